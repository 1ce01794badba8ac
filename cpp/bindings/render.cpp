// Pictures for Python: shapes and numbers are checked here, the casting is in poise/render.hpp.
#include "render.hpp"

#include <cmath>

#include "arrays.hpp"
#include "float_mode.hpp"
#include "poise/render.hpp"

namespace poise {

namespace {

using pictures::Caster;
using pictures::Kind;
using pictures::Mesh;
using pictures::Primitive;
using pictures::Settings;

constexpr int kLargestSide = 16384;
constexpr std::int64_t kMostPixels = std::int64_t{1} << 25;
constexpr double kFarthest = 1e9;  // beyond this nothing is left of a metre in float

Mesh make_mesh(nb::object vertices, nb::object faces, bool smooth, bool convex, int nx, int ny) {
    const InArray v = array_in(vertices, "vertices");
    const InInts f = ints_in(faces, "faces");
    if (v.ndim() != 2 || v.shape(1) != 3)
        throw Error("vertices has shape " + shape_text(shape_of(v)) + ", expected (n, 3)");
    if (f.ndim() != 2 || f.shape(1) != 3) throw Error("faces must have the shape (n, 3)");
    const auto nv = static_cast<std::int64_t>(v.shape(0));
    const auto nf = static_cast<std::int64_t>(f.shape(0));
    if (nf > (std::int64_t{1} << 24)) throw Error("a mesh has at most 16777216 faces");
    check_finite(v.data(), 3 * nv, "vertices");
    for (std::int64_t i = 0; i < 3 * nv; ++i)
        if (std::abs(v.data()[i]) > kFarthest) throw Error("a vertex lies too far away");
    for (std::int64_t i = 0; i < 3 * nf; ++i)
        if (f.data()[i] < 0 || f.data()[i] >= nv)
            throw Error("faces names vertex " + std::to_string(f.data()[i]) + "; there are " +
                        std::to_string(nv));
    const bool field = nx != 0 || ny != 0;
    if (field && (nx < 2 || ny < 2 || std::int64_t{nx} * ny != nv))
        throw Error("a height field of " + std::to_string(nx) + " x " + std::to_string(ny) +
                    " points cannot have " + std::to_string(nv) + " vertices");
    return Mesh(v.data(), nv, f.data(), nf, {smooth, convex, nx, ny});
}

void read3(nb::handle h, const char* name, double* out) {
    const InArray a = array_in(h, name);
    const double* p = shaped(a, name, {3});
    check_finite(p, 3, name);
    for (int i = 0; i < 3; ++i) {
        if (std::abs(p[i]) > kFarthest) throw Error(std::string(name) + " lies too far away");
        out[i] = p[i];
    }
}

std::vector<Primitive> read_primitives(nb::handle kind, nb::handle pos, nb::handle quat,
                                       nb::handle size, nb::handle color, nb::handle group,
                                       const nb::list& meshes) {
    const InInts k = ints_in(kind, "kind");
    if (k.ndim() != 1) throw Error("kind must have one axis");
    const auto n = static_cast<std::int64_t>(k.size());
    const auto p = copy_in(pos, "pos", {n, 3}), q = copy_in(quat, "quat", {n, 4});
    const auto s = copy_in(size, "size", {n, 3}), c = copy_in(color, "color", {n, 4});
    const auto g = copy_ints(group, "group", n);
    if (static_cast<std::int64_t>(meshes.size()) != n)
        throw Error("meshes must have " + std::to_string(n) + " entries");
    std::vector<Primitive> out(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        Primitive& x = out[i];
        const std::string at = "primitive " + std::to_string(i) + ": ";
        if (k.data()[i] < 0 || k.data()[i] >= pictures::kKinds) throw Error(at + "no such kind");
        x.kind = static_cast<Kind>(k.data()[i]);
        double length = 0;
        for (int j = 0; j < 4; ++j) length += q[4 * i + j] * q[4 * i + j];
        if (!(std::abs(length - 1.0) < 1e-3)) throw Error(at + "quat must have length one");
        for (int j = 0; j < 3; ++j) {
            x.pos[j] = p[3 * i + j];
            x.size[j] = s[3 * i + j];
            x.color[j] = static_cast<float>(c[4 * i + j]);
            if (std::abs(x.pos[j]) > kFarthest) throw Error(at + "pos lies too far away");
            if (!(x.size[j] >= 0 && x.size[j] <= kFarthest))
                throw Error(at + "size must be 0 or more, and not huge");
        }
        for (int j = 0; j < 4; ++j) {
            x.quat[j] = q[4 * i + j] / std::sqrt(length);
            if (!(c[4 * i + j] >= 0 && c[4 * i + j] <= 1))
                throw Error(at + "color must be in 0..1");
        }
        x.opacity = static_cast<float>(c[4 * i + 3]);
        x.group = g[i];
        x.mesh = nullptr;
        if (x.kind == Kind::mesh && !nb::try_cast(meshes[i], x.mesh, false))
            throw Error(at + "a mesh is missing");
        if (x.kind == Kind::mesh && !x.mesh) throw Error(at + "a mesh is missing");
    }
    return out;
}

void read_camera(Settings& set, nb::handle eye, nb::handle target, nb::handle up, double fov) {
    read3(eye, "camera.eye", set.eye);
    read3(target, "camera.target", set.target);
    read3(up, "camera.up", set.up);
    double d[3], d2 = 0, u2 = 0, n2 = 0;
    for (int i = 0; i < 3; ++i) {
        d[i] = set.target[i] - set.eye[i];
        d2 += d[i] * d[i];
        u2 += set.up[i] * set.up[i];
    }
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        const double n = d[j] * set.up[k] - d[k] * set.up[j];
        n2 += n * n;
    }
    if (!(d2 > 1e-18)) throw Error("the camera's eye and target are the same point");
    if (!(u2 > 1e-18)) throw Error("the camera's up has length zero");
    if (!(n2 > 1e-12 * d2 * u2)) throw Error("the camera's up points along its view");
    if (!(fov > 1e-3 && fov < 3.1)) throw Error("the camera's fov must lie in 0.06..177 degrees");
    set.fov = fov;
}

void read_colors(float (*out)[3], nb::handle h, const char* name) {
    const auto c = copy_in(h, name, {2, 3});
    for (int i = 0; i < 6; ++i) {
        if (!(c[i] >= 0 && c[i] <= 1)) throw Error(std::string(name) + " must be in 0..1");
        out[i / 3][i % 3] = static_cast<float>(c[i]);
    }
}

template <class T>
T* numbers(std::int64_t count, nb::capsule& owner) {
    T* data = new T[static_cast<std::size_t>(count)];
    owner = nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return data;
}

nb::tuple render(nb::object kind, nb::object pos, nb::object quat, nb::object size,
                 nb::object color, nb::object group, nb::list meshes, nb::object eye,
                 nb::object target, nb::object up, double fov, int width, int height, int samples,
                 bool ground, double ground_z, double checks, nb::object ground_color,
                 nb::object sky, nb::object light, double softness, double fade, bool buffers) {
    if (width < 1 || height < 1 || width > kLargestSide || height > kLargestSide ||
        std::int64_t{width} * height > kMostPixels)
        throw Error("a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                    " pixels cannot be drawn: each side is 1 to " + std::to_string(kLargestSide) +
                    ", the whole at most " + std::to_string(kMostPixels));
    if (samples < 1 || samples > 8) throw Error("samples must lie in 1..8");
    Settings set{};
    set.width = width;
    set.height = height;
    set.samples = samples;
    read_camera(set, eye, target, up, fov);
    read3(light, "light", set.light);
    const double l = std::hypot(set.light[0], set.light[1], set.light[2]);
    if (!(set.light[2] > 0.1 * l)) throw Error("the light must stand at least 6 degrees high");
    if (!(softness >= 0 && softness <= 1)) throw Error("softness must be in 0..1");
    if (!(checks > 1e-6 && checks < kFarthest)) throw Error("checks must be positive [m]");
    if (!(fade > 0 && fade < kFarthest)) throw Error("fade must be positive [m]");
    if (!(std::abs(ground_z) < kFarthest)) throw Error("ground_z must be a finite height [m]");
    set.ground = ground;
    set.ground_z = ground_z;
    set.checks = checks;
    set.softness = softness;
    set.fade = fade;
    read_colors(set.ground_color, ground_color, "ground_color");
    read_colors(set.sky, sky, "sky");
    const auto primitives = read_primitives(kind, pos, quat, size, color, group, meshes);

    const std::int64_t pixels = std::int64_t{width} * height;
    nb::capsule rgb_owner, ids_owner, depth_owner;
    auto* rgb = numbers<std::uint8_t>(3 * pixels, rgb_owner);
    auto* ids = buffers ? numbers<std::int32_t>(pixels, ids_owner) : nullptr;
    auto* depth = buffers ? numbers<float>(pixels, depth_owner) : nullptr;
    {
        nb::gil_scoped_release release;
        Caster(set, primitives).draw(rgb, ids, depth);
    }
    const auto h = static_cast<std::size_t>(height), w = static_cast<std::size_t>(width);
    nb::object image = nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(rgb, {h, w, 3}, rgb_owner));
    if (!buffers) return nb::make_tuple(image, nb::none(), nb::none());
    return nb::make_tuple(image, nb::ndarray<nb::numpy, std::int32_t>(ids, {h, w}, ids_owner),
                          nb::ndarray<nb::numpy, float>(depth, {h, w}, depth_owner));
}

}  // namespace

void bind_render(nb::module_& m) {
    nb::class_<Mesh>(m, "Mesh", "Triangles, ready to be drawn.")
        .def(nb::new_(&make_mesh), "vertices"_a, "faces"_a, "smooth"_a, "convex"_a, "nx"_a = 0,
             "ny"_a = 0, nb::call_guard<KernelFloatMode>(),
             "nx, ny: points of a height field along x and y, those along y first.");
    m.def("render", &render, "kind"_a, "pos"_a, "quat"_a, "size"_a, "color"_a, "group"_a,
          "meshes"_a, "eye"_a, "target"_a, "up"_a, "fov"_a, "width"_a, "height"_a, "samples"_a,
          "ground"_a, "ground_z"_a, "checks"_a, "ground_color"_a, "sky"_a, "light"_a, "softness"_a,
          "fade"_a, "buffers"_a, nb::call_guard<KernelFloatMode>(),
          "A picture; with buffers also what each pixel shows, and how far it is.");
}

}  // namespace poise
