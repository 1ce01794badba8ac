#include "arrays.hpp"

#include <cstring>

namespace poise {

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string s = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + (shape.size() == 1 ? ",)" : ")");
}

namespace {

std::string text_of(const nb::object& o) { return nb::str(o).c_str(); }

}  // namespace

std::string described(nb::handle h) {
    const std::string type = text_of(h.type().attr("__name__"));
    if (!nb::hasattr(h, "dtype") || !nb::hasattr(h, "strides")) return type;
    return type + " of " + text_of(h.attr("dtype")) + ", strides " + text_of(h.attr("strides"));
}

namespace {

// A view into the middle of a record or of a file's bytes may start anywhere.
void check_aligned(const void* p, std::size_t count, std::size_t bytes, const char* name) {
    if (count && reinterpret_cast<std::uintptr_t>(p) % bytes)
        throw Error(std::string(name) + " is not aligned in memory: a copy of it is");
}

}  // namespace

bool is_array(nb::handle h) {
    static PyObject* type =
        nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
    return PyObject_TypeCheck(h.ptr(), reinterpret_cast<PyTypeObject*>(type));
}

InArray array_in(nb::handle h, const char* name) {
    InArray a;
    if (const View* view = nullptr; nb::try_cast(h, view) && view) return view->array;
    if (!try_array(h, a))
        throw Error(std::string(name) + " must be a C-contiguous float64 array, not " +
                    described(h));
    check_aligned(a.data(), a.size(), alignof(double), name);
    return a;
}

InInts ints_in(nb::handle h, const char* name) {
    InInts a;
    if (!try_array(h, a))
        throw Error(std::string(name) + " must be a C-contiguous int32 array, not " + described(h));
    check_aligned(a.data(), a.size(), alignof(std::int32_t), name);
    return a;
}

std::vector<std::int64_t> shape_of(const InArray& a) {
    std::vector<std::int64_t> s;
    for (std::size_t i = 0; i < a.ndim(); ++i) s.push_back(static_cast<std::int64_t>(a.shape(i)));
    return s;
}

const double* shaped(const InArray& a, const char* name, const std::vector<std::int64_t>& shape) {
    if (shape_of(a) != shape)
        throw Error(std::string(name) + " has shape " + shape_text(shape_of(a)) + ", expected " +
                    shape_text(shape));
    return a.data();
}

void check_finite(const double* p, std::int64_t count, const char* name) {
    // x * 0 is NaN exactly where x is not finite; eight sums, so that they overlap
    double s[8] = {};
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; ++k) s[k] += p[i + k] * 0.0;
    for (; i < count; ++i) s[0] += p[i] * 0.0;
    if (s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7] == 0.0) return;
    for (i = 0; i < count; ++i)
        if (!(p[i] * 0.0 == 0.0)) break;
    throw Error(std::string(name) + " holds a number that is not finite (flat index " +
                std::to_string(i) + "): every entry must be finite");
}

namespace {

// made by NumPy and then looked into: to hand it an array of ours takes three times as long
OutArray make_by(PyObject* function, const std::vector<std::int64_t>& shape) {
    PyObject* dims = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
    if (!dims) nb::raise_python_error();
    nb::object size = nb::steal(dims);
    for (std::size_t i = 0; i < shape.size(); ++i)
        PyTuple_SetItem(dims, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
    nb::object made = nb::steal(PyObject_CallOneArg(function, dims));
    if (!made) nb::raise_python_error();
    return nb::cast<OutArray>(made);
}

PyObject* from_numpy(const char* name) {
    return nb::object(nb::module_::import_("numpy").attr(name)).release().ptr();
}

}  // namespace

OutArray make_array(const std::vector<std::int64_t>& shape) {
    static PyObject* empty = from_numpy("empty");
    return make_by(empty, shape);
}

OutArray make_zeros(const std::vector<std::int64_t>& shape) {
    static PyObject* zeros = from_numpy("zeros");
    return make_by(zeros, shape);
}

namespace {

// memory of our own, for arrays that are made less often
template <class T>
nb::ndarray<nb::numpy, T> make_owned(const std::vector<std::int64_t>& shape) {
    std::vector<std::size_t> sizes(shape.begin(), shape.end());
    std::size_t count = 1;
    for (const std::size_t s : sizes) count *= s;
    T* data = new T[count];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T>(data, sizes.size(), sizes.data(), owner);
}

}  // namespace

nb::ndarray<nb::numpy, std::int64_t> make_ints(std::int64_t size) {
    return make_owned<std::int64_t>({size});
}

nb::ndarray<nb::numpy, bool> make_bools(const std::vector<std::int64_t>& shape) {
    return make_owned<bool>(shape);
}

std::vector<double> copy_in(nb::handle h, const char* name, const std::vector<std::int64_t>& shape,
                            bool finite) {
    const InArray a = array_in(h, name);
    const double* p = shaped(a, name, shape);
    if (finite) check_finite(p, static_cast<std::int64_t>(a.size()), name);
    return std::vector<double>(p, p + a.size());
}

std::vector<std::int32_t> copy_ints(nb::handle h, const char* name, std::int64_t size) {
    const InInts a = ints_in(h, name);
    if (a.ndim() != 1 || static_cast<std::int64_t>(a.size()) != size)
        throw Error(std::string(name) + " must have " + std::to_string(size) + " entries");
    return std::vector<std::int32_t>(a.data(), a.data() + a.size());
}

}  // namespace poise
