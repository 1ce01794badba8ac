#include "model.hpp"

#include <atomic>
#include <cmath>

namespace poise {

namespace {

int q_count(std::int32_t kind) { return kind == 0 ? 7 : kind == 1 ? 4 : 1; }
int v_count(std::int32_t kind) { return kind == 0 ? 6 : kind == 1 ? 3 : 1; }

}  // namespace

Model::Model(nb::object forest) {
    try {
        read(forest);
    } catch (const nb::python_error& e) {
        throw Error(std::string("this is not a compiled forest: ") + e.what());
    } catch (const std::bad_cast&) {
        throw Error("this is not a compiled forest: sizes are whole numbers, names are strings");
    }
    check();
    plan();
    static std::atomic<std::int64_t> models{0};
    view_.id = parameters_.id = ++models;
}

void Model::read(nb::object forest) {
    const auto size = [&](const char* name) {
        return static_cast<std::int64_t>(nb::len(nb::object(forest.attr(name))));
    };
    const std::int64_t nb_count = size("parent");
    const std::int64_t links = size("link_body");
    const std::int64_t coordinates = nb::cast<std::int64_t>(forest.attr("nq"));
    const std::int64_t dofs = nb::cast<std::int64_t>(forest.attr("nv"));
    const auto ints = [&](const char* name, std::int64_t n) {
        return copy_ints(forest.attr(name), name, n);
    };
    const auto floats = [&](const char* name, const std::vector<std::int64_t>& shape,
                            bool finite = true) {
        return copy_in(forest.attr(name), name, shape, finite);
    };
    parent_ = ints("parent", nb_count);
    kind_ = ints("kind", nb_count);
    q_adr_ = ints("q_adr", nb_count);
    v_adr_ = ints("v_adr", nb_count);
    joint_ = ints("joint", nb_count);
    link_ = ints("link", nb_count);
    per_axis_ = ints("effort_per_axis", nb_count);
    link_body_ = ints("link_body", links);
    E_ = floats("E", {nb_count, 4});
    r_ = floats("r", {nb_count, 3});
    mass_ = floats("mass", {nb_count});
    mc_ = floats("mc", {nb_count, 3});
    Io_ = floats("Io", {nb_count, 6});
    armature_ = floats("armature", {dofs});
    damping_ = floats("damping", {dofs});
    stiffness_ = floats("stiffness", {dofs});
    spring_q_ = floats("spring_q", {coordinates});
    effort_ = floats("effort", {dofs}, false);
    link_p_ = floats("link_p", {links, 3});
    link_E_ = floats("link_E", {links, 4});
    const auto link_mass = floats("link_mass", {links});
    massive_.assign(nb_count, 0);
    for (std::int64_t l = 0; l < links; ++l)
        if (link_body_[l] >= 0 && link_body_[l] < nb_count && link_mass[l] > 0)
            ++massive_[link_body_[l]];
    const auto link_com = floats("link_com", {links, 3});
    for (std::int64_t l = 0; l < links; ++l) {
        if (link_body_[l] != -1) continue;
        // p + E com, both in the world
        const double *e = &link_E_[4 * l], *c = &link_com[3 * l];
        const double t[3] = {2 * (e[2] * c[2] - e[3] * c[1]), 2 * (e[3] * c[0] - e[1] * c[2]),
                             2 * (e[1] * c[1] - e[2] * c[0])};
        const double at[3] = {c[0] + e[0] * t[0] + e[2] * t[2] - e[3] * t[1],
                              c[1] + e[0] * t[1] + e[3] * t[0] - e[1] * t[2],
                              c[2] + e[0] * t[2] + e[1] * t[1] - e[2] * t[0]};
        fixed_[0] += link_mass[l];
        for (int k = 0; k < 3; ++k) fixed_[k + 1] += link_mass[l] * (link_p_[3 * l + k] + at[k]);
    }
    joint_names_ = nb::cast<std::vector<std::string>>(nb::list(forest.attr("joint_names")));
    view_.nb = static_cast<std::int32_t>(nb_count);
    view_.nl = static_cast<std::int32_t>(links);
    view_.nq = static_cast<std::int32_t>(coordinates);
    view_.nv = static_cast<std::int32_t>(dofs);
}

// nothing that the kernels index by may be out of range
void Model::check() const {
    std::int64_t q = 0, v = 0;
    for (int i = 0; i < view_.nb; ++i) {
        const std::string at = "body " + std::to_string(i) + ": ";
        if (kind_[i] < 0 || kind_[i] > 3) throw Error(at + "kind must be 0 to 3");
        if (parent_[i] < -1 || parent_[i] >= i) throw Error(at + "its parent must come before it");
        int up = i - 1;
        while (up > parent_[i]) up = parent_[up];
        if (up != parent_[i]) throw Error(at + "bodies must come depth first");
        if (kind_[i] == 0 && parent_[i] != -1) throw Error(at + "a free joint must be at a root");
        if (q_adr_[i] != q || v_adr_[i] != v) throw Error(at + "q and v must follow the bodies");
        if (link_[i] < 0 || link_[i] >= view_.nl) throw Error(at + "link out of range");
        if (joint_[i] < 0 || joint_[i] >= static_cast<int>(joint_names_.size()))
            throw Error(at + "joint out of range");
        q += q_count(kind_[i]);
        v += v_count(kind_[i]);
    }
    if (q != view_.nq || v != view_.nv) throw Error("nq and nv do not match the joints");
    for (auto b : link_body_)
        if (b < -1 || b >= view_.nb) throw Error("link_body out of range");
    if (view_.nb == 0) throw Error("a scene needs at least one joint that moves");
}

// what the passes want to know of each body, and where the inward pass accumulates
void Model::plan() {
    const int n = view_.nb;
    std::vector<int> last(n + 1, -1);  // the child that the inward pass meets first
    for (int i = 0; i < n; ++i) last[parent_[i] + 1] = i;
    std::int32_t slots = 1;
    body_.resize(n);
    for (int i = 0; i < n; ++i) {
        Body& b = body_[i];
        b.parent = parent_[i];
        b.kind = static_cast<Kind>(kind_[i]);
        b.q = q_adr_[i];
        b.v = v_adr_[i];
        b.leaf = last[i + 1] < 0;
        b.first = b.parent >= 0 && last[b.parent + 1] == i;
        b.parent_slot = b.parent >= 0 ? body_[b.parent].slot : 0;
        b.slot = b.parent < 0 || b.first ? b.parent_slot : b.parent_slot + 1;
        slots = b.slot + 1 > slots ? b.slot + 1 : slots;
        b.massless = mass_[i] == 0;
        for (int k = 0; k < 6; ++k) b.massless = b.massless && Io_[6 * i + k] == 0;
        b.turned = std::fabs(E_[4 * i]) != 1;
        if (b.leaf && b.massless)
            throw Error("joint '" + joint_name(i) + "' moves nothing that has mass");
        for (int k = 0; k < v_count(kind_[i]); ++k) {
            const int up = b.parent < 0 ? -1 : body_[b.parent].v + v_count(kind_[b.parent]) - 1;
            dof_parent_.push_back(k ? b.v + k - 1 : up);
            dof_body_.push_back(i);
        }
    }
    view_.slots = slots;
    view_.body = body_.data();
    view_.E = E_.data();
    view_.r = r_.data();
    view_.dof_parent = dof_parent_.data();
    view_.dof_body = dof_body_.data();
    view_.body_link = link_.data();
    view_.link_body = link_body_.data();
    view_.link_p = link_p_.data();
    view_.link_E = link_E_.data();
    view_.spring_q = spring_q_.data();
    view_.effort_per_axis = per_axis_.data();
    for (int i = 0; i < n; ++i) {
        if (kind_[i] > 1) scalar_at_.push_back(q_adr_[i]);
        else quat_at_.push_back(q_adr_[i] + (kind_[i] == 0 ? 3 : 0));
        if (kind_[i] == 0) root_at_.push_back(q_adr_[i]);
    }
    // a single link stays a stick when its mass changes and its inertia with it
    stick_.resize(n);
    for (int i = 0; i < n; ++i)
        stick_[i] = massive_[i] == 1 && moments_of(&mc_[3 * i], &Io_[6 * i]).stick;
    parameters_ = {0,
                   mass_.data(),
                   mc_.data(),
                   Io_.data(),
                   armature_.data(),
                   damping_.data(),
                   stiffness_.data(),
                   effort_.data(),
                   fixed_,
                   stick_.data(),
                   0,
                   0,
                   0,
                   0,
                   0,
                   0};
}

std::uint64_t Model::signature() const {
    std::uint64_t h = 1469598103934665603ull;  // FNV-1a
    const auto add = [&](std::uint64_t x) { h = (h ^ x) * 1099511628211ull; };
    for (int i = 0; i < view_.nb; ++i) {
        add(static_cast<std::uint64_t>(parent_[i] + 1));
        add(static_cast<std::uint64_t>(kind_[i]));
        for (char c : joint_name(i)) add(static_cast<unsigned char>(c));
    }
    return h;
}

bool Model::is_good(const double* q, std::int64_t rows, double slack) const {
    // no branches: targets of every copy are looked at in every step
    bool good = true;
    for (std::int64_t row = 0; row < rows; ++row, q += view_.nq) {
        for (const std::int32_t at : quat_at_) {
            const double* p = q + at;
            const double sum = p[0] * p[0] + p[1] * p[1] + (p[2] * p[2] + p[3] * p[3]);
            good &= std::fabs(sum - 1) <= 2 * slack;
        }
        for (const std::int32_t at : scalar_at_) good &= std::fabs(q[at]) <= 1e9;
        for (const std::int32_t at : root_at_) good &= (q[at] + q[at + 1] + q[at + 2]) * 0.0 == 0.0;
    }
    return good;
}

void Model::check_q(const double* q, std::int64_t rows, const char* name, double slack) const {
    if (is_good(q, rows, slack)) return;
    check_finite(q, rows * view_.nq, name);
    for (std::int64_t row = 0; row < rows; ++row, q += view_.nq) {
        for (int i = 0; i < view_.nb; ++i) {
            if (kind_[i] > 1) {
                if (std::fabs(q[q_adr_[i]]) <= 1e9) continue;
                throw Error(std::string(name) + ": joint '" + joint_name(i) + "' is at " +
                            std::to_string(q[q_adr_[i]]) + "; it must be within 1e9 of 0");
            }
            const double* p = q + q_adr_[i] + (kind_[i] == 0 ? 3 : 0);
            const double sum = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
            if (std::fabs(sum - 1) > 2 * slack)
                throw Error(std::string(name) + ": the quaternion of joint '" + joint_name(i) +
                            "' has length " + std::to_string(std::sqrt(sum)) + ", it must be 1");
        }
    }
}

void Model::check_trees(const bool* mask, const char* name) const {
    for (int i = 0; i < view_.nb; ++i) {
        const bool of_tree = mask[v_adr_[parent_[i] < 0 ? i : parent_[i]]];
        const int stop = i + 1 < view_.nb ? v_adr_[i + 1] : view_.nv;
        for (int k = v_adr_[i]; k < stop; ++k)
            if (mask[k] != of_tree)
                throw Error(std::string(name) + ": joint '" + joint_name(i) +
                            "' differs from others of its part; a part is accelerated as a whole");
    }
}

Rows query_rows(nb::handle h, const char* name, std::int64_t n, std::int64_t size, InArray& keep) {
    if (h.is_none()) return {};
    keep = array_in(h, name);
    const auto shape = shape_of(keep);
    const bool per_copy = shape.size() == 2 && shape[0] == n && shape[1] == size;
    if (!per_copy && !(shape.size() == 1 && shape[0] == size))
        throw Error(std::string(name) + " has shape " + shape_text(shape) + ", expected (" +
                    std::to_string(size) + ",) or (" + std::to_string(n) + ", " +
                    std::to_string(size) + ")");
    check_finite(keep.data(), static_cast<std::int64_t>(keep.size()), name);
    return {keep.data(), 0, per_copy ? size : 0};
}

ModelOverrides::ModelOverrides(const Model& model, nb::object mass_in, nb::object mc_in,
                               nb::object Io_in, nb::object armature_in, nb::object effort_in,
                               nb::object fixed_in, bool scaled_in)
    : mass(mass_in), mc(mc_in), Io(Io_in), armature(armature_in), effort(effort_in),
      fixed(fixed_in), scaled(scaled_in), nb_(model.nb_()), nv_(model.nv()),
      mass_(read(mass, "mass", {nb_}, true)), mc_(read(mc, "mc", {nb_, 3}, true)),
      Io_(read(Io, "Io", {nb_, 6}, true)), armature_(read(armature, "armature", {nv_}, true)),
      effort_(read(effort, "effort", {nv_}, false)), fixed_(read(fixed, "fixed", {4}, true)) {}

ModelOverrides::Table ModelOverrides::read(nb::handle given, const char* name,
                                           std::vector<std::int64_t> shape, bool finite) {
    if (given.is_none()) return {};
    const InArray a = array_in(given, name);
    std::int64_t size = 1;
    for (auto s : shape) size *= s;
    const bool per_copy = a.ndim() == shape.size() + 1;
    if (per_copy) {
        const auto rows = static_cast<std::int64_t>(a.shape(0));
        if (!copies_) copies_ = rows;
        shape.insert(shape.begin(), copies_);
    }
    return {copy_in(given, name, shape, finite), per_copy ? size : 0};
}

ModelParameters ModelOverrides::over(const Model& model, std::int64_t n) const {
    if (model.nb_() != nb_ || model.nv() != nv_)
        throw Error("these overrides were made for a model of " + std::to_string(nb_) +
                    " bodies and " + std::to_string(nv_) + " degrees of freedom");
    if (copies_ && copies_ != n)
        throw Error("these overrides have " + std::to_string(copies_) + " rows, there are " +
                    std::to_string(n) + " copies");
    ModelParameters x = model.parameters();
    x.id = 0;
    const auto put = [](const Table& from, const double*& p, std::int64_t& stride) {
        if (from.values.empty()) return;
        p = from.values.data();
        stride = from.stride;
    };
    put(mass_, x.mass, x.mass_stride);
    put(mc_, x.mc, x.mc_stride);
    put(Io_, x.Io, x.Io_stride);
    put(armature_, x.armature, x.armature_stride);
    put(effort_, x.effort, x.effort_stride);
    put(fixed_, x.fixed, x.fixed_stride);
    const bool own = !mass_.values.empty() || !mc_.values.empty() || !Io_.values.empty();
    if (own && !scaled) x.stick = nullptr;
    return x;
}

ModelParameters parameters_of(nb::handle overrides, const Model& model, std::int64_t n) {
    if (overrides.is_none()) return model.parameters();
    if (!nb::isinstance<ModelOverrides>(overrides))
        throw Error("overrides must be ModelOverrides or None");
    return nb::cast<const ModelOverrides&>(overrides).over(model, n);
}

}  // namespace poise
