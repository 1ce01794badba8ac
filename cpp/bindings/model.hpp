// The forest and its numbers, as Python hands them over.
#pragma once

#include "arrays.hpp"
#include "poise/kernel.hpp"

namespace poise {

class Model {
  public:
    explicit Model(nb::object forest);

    const Forest& forest() const { return view_; }
    const Numbers& numbers() const { return numbers_; }
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

    std::vector<std::int32_t> parent_, kind_, q_adr_, v_adr_, joint_, link_, link_body_, per_axis_;
    std::vector<double> E_, r_, mass_, mc_, Io_, armature_, damping_, stiffness_, spring_q_,
        effort_;
    std::vector<double> link_p_, link_E_;
    std::vector<std::string> joint_names_;
    std::vector<Body> body_;
    std::vector<std::int32_t> dof_parent_, dof_body_;
    double fixed_[4] = {};
    Forest view_{};
    Numbers numbers_{};
};

// (m,) is shared by all n states, (n, m) is one row each
Rows query_rows(nb::handle h, const char* name, std::int64_t n, std::int64_t size, InArray& keep);

// Numbers that replace the model's: (mass, mc, Io, armature, effort, fixed), each None, shared,
// or one row per copy.
class OwnNumbers {
  public:
    Numbers read(nb::handle given, const Model& model, std::int64_t n);

  private:
    std::vector<double> held_[6];
};

}  // namespace poise
