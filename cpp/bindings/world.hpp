// n copies of a scene, as Python sees them.
#pragma once

#include <memory>

#include "collision_model.hpp"
#include "model.hpp"
#include "pool.hpp"

namespace poise {

// Gains, checked once; a world lays them out for its lanes when it first meets them.
class Gains {
  public:
    Gains(const Model& model, nb::object kp, nb::object kd, nb::object pin);
    // signature, copies, nv, nl, kp, kd, pin: for pickles
    using State = std::tuple<std::uint64_t, std::int64_t, int, int, std::vector<double>,
                             std::vector<double>, std::vector<double>>;
    explicit Gains(const State& state);
    State state() const { return {signature, copies, nv, nl, kp_, kd_, pin_}; }
    GainTable table() const;

    const std::uint64_t id;
    const std::uint64_t signature;  // of the model it was made for
    std::int64_t copies;            // 1: shared
    int nv, nl;

  private:
    std::vector<double> kp_, kd_, pin_;
};

using FormArray = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;
using MaskArray = nb::ndarray<const bool, nb::c_contig, nb::device::cpu>;

// Gains, a target and how they act, looked up once: see poise.Drive. Shapes are checked by the
// world that is stepped with it.
class Drive {
  public:
    Drive(nb::object gains, nb::object target_q, nb::object target_v, nb::object target_a, int rows,
          nb::object strength, nb::object pin, nb::object form, int method, bool embedded,
          nb::object feedforward);

    const Gains& gains() const { return *gains_; }

    const nb::object target_q, target_v, target_a, strength, pin, form, feedforward;  // as given
    const int rows, method;
    const bool embedded;

  private:
    friend class World;
    nb::object owner_;  // keeps the gains alive
    const Gains* gains_;
    InArray q_, v_, a_, strength_, pin_;  // invalid where None
    FormArray forms_;
    int form_ = 0;
    MaskArray fed_;
    bool feedforward_ = false;
};

// Contacts of the last step of all copies, one row each.
struct Contacts {
    nb::object copy, collider, other;   // (k) other: -1 is the ground
    nb::object point, normal, impulse;  // (k, 3) normal: towards collider
    nb::object gap;                     // (k)
};

// Projectiles of all copies.
struct ProjectileStates {
    nb::object thrown;  // (n, k) bool
    nb::object q, v;    // (n, k, 7), (n, k, 6)
};

// Pushes, projectiles and impulses of contact at one moment, without the zeros: what a state needs
// besides q and v to go on bit for bit.
struct Memory {
    std::int64_t n, lanes, projectile_size, impulse_size;
    std::vector<double> pushes, projectiles;  // (n, size), or empty if there are none
    std::vector<std::int64_t> first;          // (tiles + 1) of the kept impulses
    std::vector<std::int32_t> slot;           // (kept)
    std::vector<double> impulse;              // (kept, 3, lanes)
    OutArray dense() const;                   // (n, size)
};

class World {
  public:
    // whole: the model with projectiles at its end, or the same
    World(nb::object model, nb::object whole, std::int64_t n, double dt, bool single_precision,
          int threads, nb::object gravity, nb::object overrides, nb::object collision_model);

    nb::tuple read();
    // fills arrays of float32 or float64, by the names of their fields. links: (l,) int32, None is
    // all; pairs: (k, 2) int32
    void read_into(nb::dict fields, nb::object links, nb::object pairs);
    // row i of the arrays is for copies[i]; None is all
    void write(nb::object q, nb::object v, nb::object time, nb::object memory, nb::object copies);
    // inertias of the bodies of the whole model, and friction of the surfaces, in some copies
    void write_inertia(nb::object mass, nb::object mc, nb::object Io, nb::object copies);
    void write_friction(nb::object friction, nb::object copies);
    // distance (n, k), normal (n, k, 3), link (n, k) of rays (k, 3) or (n, k, 3)
    nb::tuple ray(nb::object origin, nb::object direction, double farthest, bool ground, bool links,
                  nb::object skipped, std::int64_t nothing);
    OutArray time() const;
    OutArray memory() const { return snapshot().dense(); }
    Memory snapshot() const;
    OutArray torque();
    nb::ndarray<nb::numpy, bool> saturated() const;
    // throws a projectile that waits in all these copies; returns which, or -1 if there is none
    int throw_projectile(nb::object q, nb::object v, nb::object which);
    ProjectileStates projectiles() const;
    Contacts contacts() const;
    nb::tuple faults() const;  // copies, joints, times, whether singular
    // (n, 3) body, whether singular, time; the body is -1 where a copy goes on
    OutArray fault_table() const;
    void restore_faults(nb::object table);
    void push(int link, nb::object force, nb::object torque, nb::object point, double at,
              double duration, nb::object which);
    // a spring pulls a point of a link to a place that moves; one for each link
    void drag(int link, nb::object to, nb::object velocity, nb::object point, double stiffness,
              double damping, nb::object which);
    void release(int link, nb::object which);
    // returns the number of frozen copies
    int step(const Drive* drive, nb::object force, nb::object acceleration,
             nb::object acceleration_mask, int steps);
    // torques of a drive at these states, for worlds without contact; the world's own state is lost
    OutArray torques(nb::object q, nb::object v, nb::object gains, nb::object target_q,
                     nb::object target_v, nb::object load, nb::object gravity, int form,
                     int method);
    std::int64_t tiles() const { return kernel_->tiles(); }
    int threads() const { return pool_.size(); }
    const std::string& isa() const { return isa_; }  // instruction set of its kernel
    // seconds by phase, counts, residuals by size, and the largest, of the steps since `on`
    void start_profile() { profile_.assign(static_cast<std::size_t>(pool_.size()), {}); }
    void stop_profile() { profile_.clear(); }
    nb::tuple profile() const;
    void set_gravity(nb::object gravity);
    void correct_momentum(bool on) { correct_momentum_ = on; }
    void set_substeps(int count) { substeps_ = count; }

  private:
    // (nv) booleans
    const bool* dof_mask(const MaskArray& mask, const char* name) const;
    // (size,) or (n, size), and with rows (rows, size) or (rows, n, size)
    Rows rows_of(const InArray& array, const char* name, int size, int rows) const;
    Rows rows_in(nb::handle h, const char* name, int size, InArray& keep) const;
    void read_drive(const Drive& drive, int steps, StepCall& call);
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
    void run(const ReadCall& call, std::int64_t numbers);
    // work on all tiles, by threads if it is worth it, without the interpreter
    void share(bool threads, const Pool::Work& work);
    // (k,) int64 indices, or all of None
    Copies copies_in(nb::handle h, std::vector<std::int64_t>& keep) const;
    Rows rows_for(nb::handle h, const char* name, std::int64_t count, int size,
                  InArray& keep) const;
    nb::ndarray<nb::c_contig, nb::device::cpu> array_out(nb::handle h, const std::string& name,
                                                         std::vector<std::int64_t> shape,
                                                         bool flags) const;

    nb::object owner_, whole_owner_;  // keep the models alive
    const Model &model_, &whole_;
    std::int64_t n_;
    double dt_;
    double gravity_[3];
    bool correct_momentum_ = true;
    int substeps_ = 1;
    std::vector<double> time_, memory_;
    std::vector<std::uint8_t> frozen_;
    std::vector<Fault> fault_;
    nb::object overrides_;
    CollisionModelReader collision_model_;
    // of one copy: pushes, then projectiles, then impulses of contact
    std::int64_t projectile_size_, impulse_size_, memory_size_;
    std::string isa_;
    std::unique_ptr<WorldKernel> kernel_;
    Pool pool_;
    std::uint64_t gains_met_[8] = {};
    double push_until_;
    bool busy_ = false;
    std::vector<StepProfile> profile_;  // (threads), or empty
    std::vector<std::int64_t> all_;     // 0 .. n - 1
};

}  // namespace poise
