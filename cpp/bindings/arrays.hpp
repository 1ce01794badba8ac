// Arrays at the door: shapes, types and finiteness are checked here, by name.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace poise {

// becomes poise.PoiseError in Python
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using InArray = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using InInts = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;
using OutArray = nb::ndarray<nb::numpy, double>;

// An array whose memory was looked up once. To ask NumPy for it takes longer than to read it, where
// a controller reads the same memory of an engine in every call.
struct View {
    InArray array;

    bool any() const {
        const double* p = array.data();
        return std::any_of(p, p + array.size(), [](double x) { return x != 0; });
    }
};

// what a value is, for errors: its type, and dtype and strides of an array
std::string described(nb::handle h);

std::string shape_text(const std::vector<std::int64_t>& shape);

// Whether it is an array of NumPy's. Scalars of NumPy lend their memory, too, and not all of them
// say what it holds: nanobind would read a date's missing format.
bool is_array(nb::handle h);

// the array if it is one of this type and layout; it is not converted
template <class Array>
bool try_array(nb::handle h, Array& to) {
    return is_array(h) && nb::try_cast(h, to, false);
}

// a C-contiguous float64 array, or an Error that names it
InArray array_in(nb::handle h, const char* name);
InInts ints_in(nb::handle h, const char* name);
std::vector<std::int64_t> shape_of(const InArray& a);

// exactly this shape
const double* shaped(const InArray& a, const char* name, const std::vector<std::int64_t>& shape);

void check_finite(const double* p, std::int64_t count, const char* name);

// a new array that Python owns
OutArray make_array(const std::vector<std::int64_t>& shape);
OutArray make_zeros(const std::vector<std::int64_t>& shape);
nb::ndarray<nb::numpy, std::int64_t> make_ints(std::int64_t size);
nb::ndarray<nb::numpy, bool> make_bools(const std::vector<std::int64_t>& shape);

std::vector<double> copy_in(nb::handle h, const char* name, const std::vector<std::int64_t>& shape,
                            bool finite = true);
std::vector<std::int32_t> copy_ints(nb::handle h, const char* name, std::int64_t size);

}  // namespace poise
