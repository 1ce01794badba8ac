// The compiled forest and its parameters, from Python.
#pragma once

#include "arrays.hpp"
#include "poise/kernel.hpp"

namespace poise {

class Model {
  public:
    explicit Model(nb::object forest);

    const Forest& forest() const { return view_; }
    const ModelParameters& parameters() const { return parameters_; }
    int nb_() const { return view_.nb; }
    int nq() const { return view_.nq; }
    int nv() const { return view_.nv; }
    int nl() const { return view_.nl; }
    std::uint64_t signature() const;  // of topology and joint names
    const std::string& joint_name(int body) const { return joint_names_[joint_[body]]; }
    // finite, and every quaternion of unit length: a thousandth off is mended where states are
    // taken in; targets are used as they are and must be exact to a millionth
    void check_q(const double* q, std::int64_t rows, const char* name, double slack = 1e-3) const;
    // a mask (nv) that is the same for all joints of a tree
    void check_trees(const bool* mask, const char* name) const;

  private:
    void read(nb::object forest);
    void check() const;
    void plan();
    bool is_good(const double* q, std::int64_t rows, double slack) const;

    std::vector<std::int32_t> parent_, kind_, q_adr_, v_adr_, joint_, link_, link_body_, per_axis_;
    std::vector<double> E_, r_, mass_, mc_, Io_, armature_, damping_, stiffness_, spring_q_,
        effort_;
    std::vector<double> link_p_, link_E_;
    std::vector<std::string> joint_names_;
    std::vector<Body> body_;
    std::vector<std::int32_t> massive_;  // (nb) how many links of a body have mass
    std::vector<std::uint8_t> stick_;
    std::vector<std::int32_t> quat_at_, scalar_at_, root_at_;  // where they begin in q
    std::vector<std::int32_t> dof_parent_, dof_body_;
    double fixed_[4] = {};
    Forest view_{};
    ModelParameters parameters_{};
};

// (m,) is shared by all n states, (n, m) is one row each
Rows query_rows(nb::handle h, const char* name, std::int64_t n, std::int64_t size, InArray& keep);

// Parameters in place of the model's: each None, shared by all copies, or one row per copy.
class ModelOverrides {
  public:
    ModelOverrides(const Model& model, nb::object mass, nb::object mc, nb::object Io,
                   nb::object armature, nb::object effort, nb::object fixed, bool scaled);

    // the model's parameters with these in their places, for n copies
    ModelParameters over(const Model& model, std::int64_t n) const;
    std::int64_t copies() const { return copies_; }  // rows of those that differ; 0: all are shared

    const nb::object mass, mc, Io, armature, effort, fixed;  // as given
    const bool scaled;  // each link's inertia is that of the model, times the ratio of the masses

  private:
    struct Table {
        std::vector<double> values;
        std::int64_t stride = 0;
    };
    Table read(nb::handle given, const char* name, std::vector<std::int64_t> shape, bool finite);

    std::int64_t copies_ = 0;
    const std::int32_t nb_, nv_;
    Table mass_, mc_, Io_, armature_, effort_, fixed_;
};

// the model's parameters, or with overrides (None or ModelOverrides) in their places
ModelParameters parameters_of(nb::handle overrides, const Model& model, std::int64_t n);

}  // namespace poise
