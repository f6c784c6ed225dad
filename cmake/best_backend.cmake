# isotope_best_backend(<result> <backend>...): the usable backend of the highest rank, by isotope_<backend>_USABLE and isotope_<backend>_RANK; the first
# one among equals.
function(isotope_best_backend result)
  set(best "")
  foreach(backend IN LISTS ARGN)
    if(isotope_${backend}_USABLE AND (NOT best OR isotope_${backend}_RANK GREATER isotope_${best}_RANK))
      set(best ${backend})
    endif()
  endforeach()
  set(${result} "${best}" PARENT_SCOPE)
endfunction()
