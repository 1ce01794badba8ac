#include "hull.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace poise {

namespace {

constexpr std::int64_t kMostCorners = 1 << 24;

void check_indices(const std::vector<std::int32_t>& x, std::int64_t count, const char* what) {
    for (const std::int32_t k : x)
        if (k < 0 || k >= count) throw Error(std::string(what) + " is out of range");
}

// lists of small sets, one after the other, and where each begins
void flatten(const std::vector<std::set<std::int32_t>>& sets, std::vector<std::int32_t>& first,
             std::vector<std::int32_t>& all) {
    for (const auto& s : sets) {
        if (s.empty()) throw Error("hull: a corner belongs to no face");
        first.push_back(static_cast<std::int32_t>(all.size()));
        all.insert(all.end(), s.begin(), s.end());
    }
    first.push_back(static_cast<std::int32_t>(all.size()));
}

}  // namespace

HullReader::HullReader(nb::handle source) {
    const auto count = [&](const char* name) {
        return static_cast<std::int64_t>(nb::len(nb::object(source.attr(name))));
    };
    const std::int64_t corners = count("corners"), triangles = count("face"),
                       faces = count("loop_size");
    if (corners < 4 || corners > kMostCorners || triangles < 4 || faces < 4)
        throw Error("hull: at least 4 corners and 4 faces are needed");
    corner_ = copy_in(source.attr("corners"), "hull_corners", {corners, 3});
    const auto triangle = copy_ints(source.attr("triangles"), "hull_triangles", 3 * triangles);
    const auto face = copy_ints(source.attr("face"), "hull_face", triangles);
    const auto size = copy_ints(source.attr("loop_size"), "hull_loop_size", faces);
    loop_ = copy_ints(source.attr("loop"), "hull_loop", count("loop"));
    check_indices(triangle, corners, "hull_triangles");
    check_indices(face, faces, "hull_face");
    check_indices(loop_, corners, "hull_loop");
    std::int64_t all = 0;
    for (const std::int32_t k : size) {
        if (k < 3 || k > corners) throw Error("hull_loop_size: a face has at least 3 corners");
        loop_first_.push_back(static_cast<std::int32_t>(all));
        all += k;
    }
    if (all != static_cast<std::int64_t>(loop_.size()))
        throw Error("hull_loop_size does not add up to hull_loop");
    loop_first_.push_back(static_cast<std::int32_t>(all));
    view_.corners = static_cast<std::int32_t>(corners);
    view_.faces = static_cast<std::int32_t>(faces);
    view_.corner = corner_.data();
    view_.loop_first = loop_first_.data();
    view_.loop = loop_.data();
    join(triangle, face);
    measure_faces();
    find_starts();
}

// which corners share an edge, and which faces meet in a corner
void HullReader::join(const std::vector<std::int32_t>& triangle,
                      const std::vector<std::int32_t>& face) {
    std::vector<std::set<std::int32_t>> near(view_.corners), faces(view_.corners);
    for (std::size_t t = 0; t < face.size(); ++t)
        for (int i = 0; i < 3; ++i) {
            const std::int32_t a = triangle[3 * t + i], b = triangle[3 * t + (i + 1) % 3];
            near[a].insert(b);
            near[b].insert(a);
            faces[a].insert(face[t]);
        }
    flatten(near, neighbour_first_, neighbour_);
    flatten(faces, corner_face_first_, corner_face_);
    view_.neighbour_first = neighbour_first_.data();
    view_.neighbour = neighbour_.data();
    view_.corner_face_first = corner_face_first_.data();
    view_.corner_face = corner_face_.data();
}

// normals by the sum over the corners (Newell)
void HullReader::measure_faces() {
    for (int f = 0; f < view_.faces; ++f) {
        const int first = loop_first_[f], size = loop_first_[f + 1] - first;
        double n[3] = {0, 0, 0}, offset = 0;
        const double* o = corner_.data() + 3 * loop_[first];
        for (int k = 0; k < size; ++k) {
            const double* a = corner_.data() + 3 * loop_[first + k];
            const double* b = corner_.data() + 3 * loop_[first + (k + 1) % size];
            for (int i = 0; i < 3; ++i) {
                const int j = (i + 1) % 3, l = (i + 2) % 3;
                n[i] += (a[j] - o[j]) * (b[l] - o[l]) - (a[l] - o[l]) * (b[j] - o[j]);
            }
        }
        const double area = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        if (!(area > 0)) throw Error("hull: a face has no area");
        for (double& x : n) x /= area;
        for (int k = 0; k < size; ++k) {
            const double* a = corner_.data() + 3 * loop_[first + k];
            offset += (n[0] * a[0] + n[1] * a[1] + n[2] * a[2]) / size;
        }
        plane_.insert(plane_.end(), {n[0], n[1], n[2], offset});
    }
    view_.plane = plane_.data();
}

// from neighbour to neighbour, as far along d as that leads
std::int32_t HullReader::climb(std::int32_t at, const double* d) const {
    const auto along = [&](std::int32_t k) {
        const double* p = corner_.data() + 3 * k;
        return d[0] * p[0] + d[1] * p[1] + d[2] * p[2];
    };
    double most = along(at);
    for (std::int32_t last = -1; last != at;) {
        last = at;
        for (int k = neighbour_first_[last]; k < neighbour_first_[last + 1]; ++k)
            if (along(neighbour_[k]) > most) at = neighbour_[k], most = along(at);
    }
    return at;
}

// the corner that lies furthest along the middle of each cell of directions
void HullReader::find_starts() {
    for (int side = 0; side < 6; ++side)
        for (int u = 0; u < kStarts; ++u)
            for (int v = 0; v < kStarts; ++v) {
                const int axis = side / 2;
                double d[3];
                d[axis] = side % 2 ? -1 : 1;
                d[(axis + 1) % 3] = (2 * u + 1.0) / kStarts - 1;
                d[(axis + 2) % 3] = (2 * v + 1.0) / kStarts - 1;
                start_.push_back(climb(start_.empty() ? 0 : start_.back(), d));
            }
    view_.start = start_.data();
}

}  // namespace poise
