// n copies of a scene, as Python sees them.
#pragma once

#include <memory>

#include "model.hpp"
#include "pool.hpp"
#include "collision_model.hpp"

namespace poise {

// Gains, checked once; a world lays them out for its lanes when it first meets them.
class Gains {
  public:
    Gains(const Model& model, nb::object kp, nb::object kd, nb::object pin);
    GainTable table() const;

    const std::uint64_t id;
    const std::uint64_t signature;  // of the model it was made for
    std::int64_t copies;            // 1: shared
    int nv, nl;

  private:
    std::vector<double> kp_, kd_, pin_;
};

class World {
  public:
    // whole: the model with spares at its end, or the same
    World(nb::object model, nb::object whole, std::int64_t n, double dt, bool single_precision,
          int threads, nb::object gravity, nb::object numbers, nb::object touch);

    nb::tuple read() const;
    void write(nb::object q, nb::object v, nb::object time, nb::object memory, nb::object which);
    OutArray time() const;
    OutArray memory() const;
    OutArray torque() const;
    nb::ndarray<nb::numpy, bool> saturated() const;
    // a spare that waits in all these copies flies off; returns which, or -1 if there is none
    int throw_spare(nb::object q, nb::object v, nb::object which);
    OutArray spares() const;     // (n, spares, 14)
    nb::tuple contacts() const;  // copies, colliders, others, points, normals, impulses, gaps
    nb::tuple faults() const;    // copies, joints, times, whether singular
    void push(int link, nb::object force, nb::object torque, nb::object point, double at,
              double duration, nb::object which);
    // a spring pulls a point of a link to a place that moves; one for each link
    void drag(int link, nb::object to, nb::object velocity, nb::object point, double stiffness,
              double damping, nb::object which);
    void release(int link, nb::object which);
    // where pairs with cylinders and meshes touch, until told anew: (n, pairs, 4, 7), with gap,
    // normal and point each
    void meet(nb::object touches);
    // returns how many copies stand still
    int step(nb::object gains, nb::object target_q, nb::object target_v, nb::object target_a,
             nb::object strength, nb::object pin, nb::object force, nb::object acceleration,
             int steps, int rows, nb::object form, int method, bool embedded,
             nb::object feedforward, nb::object accelerated);
    // torques of a drive at these states, for worlds without contact; the world's own state is lost
    OutArray torques(nb::object q, nb::object v, nb::object gains, nb::object target_q,
                     nb::object target_v, nb::object load, nb::object gravity, int form,
                     int method);
    int threads() const { return pool_.size(); }
    const std::string& isa() const { return isa_; }  // instruction set of its kernel
    void set_gravity(nb::object gravity);
    void correct_momentum(bool on) { correct_momentum_ = on; }

  private:
    using FormArray = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;
    using MaskArray = nb::ndarray<const bool, nb::c_contig, nb::device::cpu>;
    // (nv) booleans
    const bool* dof_mask(nb::handle h, const char* name, MaskArray& keep) const;
    Rows rows_in(nb::handle h, const char* name, int size, int rows, InArray& keep) const;
    // (3,) or (n, 3), finite
    Rows vectors_in(nb::handle h, const char* name, InArray& keep) const;
    int place_of(const Gains& gains);
    std::vector<std::uint8_t> mask_in(nb::handle h) const;
    void find_pushes();
    bool dragging() const;
    std::vector<int> slots_for(nb::object which, int dragged);
    Push* pushes_of(std::int64_t copy);
    void check_idle() const;
    void run(StepCall& call);

    nb::object owner_, whole_owner_;  // keep the models alive
    const Model &model_, &whole_;
    std::int64_t n_;
    double dt_;
    double gravity_[3];
    bool correct_momentum_ = true;
    std::vector<double> time_, memory_;
    std::vector<std::uint8_t> frozen_;
    std::vector<Fault> fault_;
    OwnNumbers own_;
    OwnTouchables touch_;
    // of one copy: pushes, then spares, then impulses of contact
    std::int64_t spare_size_, impulse_size_, memory_size_;
    std::string isa_;
    std::unique_ptr<WorldKernel> kernel_;
    Pool pool_;
    std::uint64_t gains_met_[8] = {};
    double push_until_;
    bool busy_ = false;
};

}  // namespace poise
