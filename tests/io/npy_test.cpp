// The header of a .npy file.
#include <isotope/io/npy.hpp>

#include <gtest/gtest.h>

#include <string>

TEST(npy, has_a_header_of_a_multiple_of_64_bytes_that_says_the_shape) {
  for (const std::size_t rows : {0u, 1u, 10u, 123456789u})
    for (const std::size_t cols : {1u, 384u, 99999u}) {
      const std::string h = isotope::io::npy_header(rows, cols);
      EXPECT_EQ(h.size() % 64, 0u);
      EXPECT_EQ(h.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
      EXPECT_EQ(std::size_t(static_cast<unsigned char>(h[8])) + 256 * std::size_t(static_cast<unsigned char>(h[9])), h.size() - 10);
      EXPECT_TRUE(h.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                                           std::to_string(cols) + "), }"));
      EXPECT_EQ(h.back(), '\n');
    }
}
