#pragma once
/// The name that the operating system shows for a thread, in debuggers and in `ps -L`.
#include <pthread.h>

#include <string>

namespace isotope {

/// Names the calling thread. Systems keep 15 characters or more; a name that is refused changes nothing.
inline void name_this_thread(const std::string& text) {
#if defined(__APPLE__)
  pthread_setname_np(text.c_str());
#else
  pthread_setname_np(pthread_self(), text.c_str());
#endif
}

}  // namespace isotope
