// Interface of the kernels: plain data and virtual calls, nothing else.
//
// Everything here is the same for every instruction set. The bindings own the memory of inputs
// and outputs and have checked it; a kernel owns its state in blocks of lanes.
#pragma once

#include <cstdint>

#include "poise/balance/balance_params.hpp"
#include "poise/contact/collision_model.hpp"
#include "poise/model.hpp"
#include "poise/profile.hpp"

namespace poise {

enum class Form : std::int32_t { pd = 0, explicit_position = 1, spd = 2, implicit = 3 };
enum class Method : std::int32_t { maba = 0, df = 1, sf = 2, pcg = 3 };

// An input array: one row per step and per copy; a stride of 0 repeats.
struct Rows {
    const double* p = nullptr;
    std::int64_t step = 0, copy = 0;
};

struct GainTable {
    const double* kp;  // (n or 1, nv)
    const double* kd;
    std::int64_t stride;  // 0: shared by all copies
    const double* pin;    // (nl, 4) kp, kd of the translation; kp, kd of the rotation
};

// A running push, one of the fixed number of slots in a copy's memory: a force and a torque, or a
// spring that drags a point of the link along.
struct Push {
    double link;        // index + 1, 0 is an empty slot
    double start, end;  // [s]
    union {
        double force[3];  // world axes [N]
        double to[3];     // where the spring pulls to at the start, in the world [m]
    };
    union {
        double torque[3];    // world axes [N m]
        double velocity[3];  // of that place [m/s]
    };
    double point[3];            // in the link's frame [m]
    double stiffness, damping;  // of the spring [N/m, N s/m]; both are 0 for a force
    bool drags() const { return stiffness > 0 || damping > 0; }
};
constexpr int kPushes = 8;
constexpr int kPush = 14;                 // doubles of a push
constexpr int kMemory = kPushes * kPush;  // of a copy; projectiles and impulses of contact follow
static_assert(sizeof(Push) == kPush * sizeof(double));

// Where and when a copy was lost.
struct Fault {
    std::int32_t body;
    bool singular;  // its mass matrix could not be inverted there
    double time;
};

// One contact of the last step, as the user sees it.
struct ContactRecord {
    std::int64_t copy;
    std::int32_t collider, other;  // other: -1 is the ground
    double at[3], normal[3];       // normal: towards collider
    double impulse[3];             // on collider [N s]
    double gap;                    // when the step began [m]
};

constexpr int kProjectile = 14;  // doubles of memory per projectile

// An output array of float or double, one row per copy; null if it is not asked for.
struct OutRows {
    void* p = nullptr;
    bool single_precision = false;
};

// Contacts between a link and another, the ground (-1), or the obstacle k (-2 - k): `sign` is -1
// where the force on the second one is asked for.
struct LinkPair {
    std::int32_t link, other, column;
    std::int32_t sign;
};

// What to read from a world, and where to.
struct ReadCall {
    double dt = 0;
    OutRows q, v, torque;
    const std::int32_t* link = nullptr;         // (links) which
    const std::int32_t* link_column = nullptr;  // (nl) its place among them, or -1
    std::int64_t links = 0;
    OutRows link_position, link_quat;                 // (links, 3), (links, 4)
    OutRows link_velocity, link_angular_velocity;     // (links, 3)
    bool* link_contact = nullptr;                     // (n, links)
    OutRows link_contact_force;                       // (links, 3) [N]
    const LinkPair* pair = nullptr;                   // sorted by link, then other; link < other,
    std::int64_t pair_entries = 0, pair_columns = 0;  // unless other is below 0
    bool* pair_contact = nullptr;                     // (n, pair_columns)
    OutRows pair_contact_force;                       // (pair_columns, 3) [N]
    bool moves() const {
        return link_position.p || link_quat.p || link_velocity.p || link_angular_velocity.p;
    }
    bool touches() const {
        return link_contact || link_contact_force.p || pair_contact || pair_contact_force.p;
    }
};

// Rays of a batch: k in each copy. A stride of 0 shares them.
struct RayCall {
    std::int64_t k = 0;
    const double *origin = nullptr, *direction = nullptr;  // (n or 1, k, 3), unit directions
    std::int64_t origin_stride = 0, direction_stride = 0;
    double farthest = 0;                    // [m]
    bool ground = true, links = true;       // what to meet; obstacles always
    const std::uint8_t* skipped = nullptr;  // (links) those that are not met
    double* distance = nullptr;             // (n, k), infinite if nothing is hit
    double* normal = nullptr;               // (n, k, 3)
    std::int64_t* link = nullptr;           // (n, k) link, -1 ground, -2 - i obstacle
    std::int64_t nothing = 0;               // what `link` is then
};

// Impulses that are kept for the next step: slots that have any, tile by tile.
struct KeptImpulses {
    std::int64_t* first;  // (tiles + 1) where those of each tile begin
    std::int32_t* slot;   // (kept)
    double* impulse;      // (kept, 3, lanes)
};

// Some copies of a world: row i of an array is for copy[i].
struct Copies {
    const std::int64_t* copy;
    std::int64_t count;
};

struct StepCall {
    int steps = 1;
    int substeps = 1;  // of each step; dt is theirs, and rows of targets are held for all of them
    double dt = 0;
    double gravity[3] = {0, 0, 0};
    Rows force, acceleration;           // (nv)
    const bool* accelerated = nullptr;  // (nv) which get accelerations, whole trees; null is all
    Rows load;                          // (nv) acts beside the torques, outside their limits
    Rows target_q, target_v, target_a;  // (nq), (nv), (nv)
    Rows strength, pin;                 // (nl)
    int gains = -1;                     // from WorldKernel::add_gains; -1 is no drive
    Form form = Form::implicit;
    const std::uint8_t* forms = nullptr;  // (nv) of each degree of freedom; null: all have `form`
    Method method = Method::maba;
    bool embedded = true;
    bool feedforward = false;        // of the roots, from the target's acceleration
    const bool* fed = nullptr;       // (nv) which roots; null is all that are driven
    bool correct_momentum = true;    // of trees that nothing holds
    bool torques_only = false;       // the state is left where it is
    double* time = nullptr;          // (n) clocks
    double* memory = nullptr;        // (n, kMemory) running pushes, or null if there are none
    std::uint8_t* frozen = nullptr;  // (n)
    Fault* fault = nullptr;          // (n)
    StepProfile* profile = nullptr;  // (threads), or null
};

// n copies of a scene.
class WorldKernel {
  public:
    virtual ~WorldKernel();
    virtual std::int64_t tiles() const = 0;
    virtual int lane_count() const = 0;
    // of tiles begin .. end - 1
    virtual void read(const ReadCall& call, std::int64_t begin, std::int64_t end,
                      int thread) const = 0;
    virtual void cast_rays(const RayCall& call, std::int64_t begin, std::int64_t end,
                           int thread) const = 0;
    // a stride of 0 writes the same row to all
    virtual void write(const double* q, const double* v, std::int64_t q_stride,
                       std::int64_t v_stride, const Copies& copies) = 0;
    virtual void read_limited(bool* limited) const = 0;  // (n, nv) torque at its limit
    virtual std::int64_t count_kept() const = 0;
    virtual void read_kept(const KeptImpulses& out) const = 0;
    // (count, slots, 3); null: none
    virtual void write_impulses(const double* impulse, const Copies& copies) = 0;
    // masses, their first moments and inertias of the bodies, (count, nb), (count, nb, 3) and
    // (count, nb, 6): these copies have inertias of their own from now on
    virtual void write_inertia(const double* mass, const double* mc, const double* Io,
                               const Copies& copies) = 0;
    // the table has been written to, or has become one with a row for each copy
    virtual void set_friction(const double* friction_root, std::int64_t stride) = 0;
    // (n, projectiles, 14): 1 if it is out, q, v
    virtual void read_projectiles(double* out) const = 0;
    virtual bool any_projectile() const = 0;  // whether one has been thrown
    // (count, projectiles, 14); null: none has been thrown
    virtual void write_projectiles(const double* in, const Copies& copies) = 0;
    virtual std::int64_t count_contacts() const = 0;
    virtual void read_contacts(ContactRecord* out) const = 0;
    virtual int add_gains(const GainTable& gains) = 0;  // returns its place, old ones are dropped
    virtual void prepare(Method method) = 0;  // whatever a step by this method needs to allocate
    virtual void step(const StepCall& call, std::int64_t begin, std::int64_t end, int thread) = 0;
};

// What a query computes.
enum class Quantity : std::int32_t {
    forward_kinematics,   // out0 (nl, 3), out1 (nl, 4)
    link_velocities,      // out0 (nl, 6) linear, angular
    inverse_dynamics,     // out0 (nv) from v, a
    forward_dynamics,     // out0 (nv) from v, tau
    mass_matrix,          // out0 (nv, nv)
    jacobian,             // out0 (6, nv)
    jacobian_bias,        // out0 (6)
    center_of_mass,       // out0 (3)
    centroidal_momentum,  // out0 (6, nv), out1 (6)
    energy,               // out0 (2) kinetic, potential
    stable_pd,            // out0 (nv) acceleration, out1 (nv) torque; tau is added to the drive
    drive,                // out0 (nv) Q, out1 (nv) K
    kane,                 // out0 (nv) tau, out1 (nv) acceleration: a, or that of a target
    tasks,                // out0: see TaskLayout
};

// A function of many states: see queries.hpp.
struct Query {
    Quantity quantity;
    std::int64_t n;
    double gravity[3];
    Rows q, v, a, tau, external;  // external: (nl, 6) force at the link's origin, torque
    Rows target_q, target_v, kp, kd;
    Rows target_a, past;  // kane: past (2 nq) is where the target was at t and at t - dt
    bool velocity, feedforward, as_printed;  // kane: what of the target counts
    double dt;
    Form form;
    Method method;
    bool limits;  // stable_pd: respect the effort limits
    int link;
    double point[3];
    const double* points;  // tasks: (point_count, 4) link, and the point in its frame
    int point_count;
    bool brief;  // tasks: without mass matrix and Jacobians, which are left as they are
    double* out0;
    double* out1;
    std::int32_t* fault;  // (n) body of a singular joint, -1 is none
};

// Quantities of a state that the balance solver reads: where each begins in the row of the state,
// for k points.
struct TaskLayout {
    std::int64_t A;     // (6, nv) momentum matrix
    std::int64_t M;     // (nv, nv) mass matrix
    std::int64_t J;     // (k, 6, nv) Jacobians of the points
    std::int64_t h;     // (nv) bias force
    std::int64_t rate;  // (6) rate of momentum at zero acceleration
    std::int64_t c;     // (3) center of mass
    std::int64_t bias;  // (k, 6) J' v of the points
    std::int64_t p;     // (k, 3) their positions
    std::int64_t R;     // (k, 3, 3) orientations of their links
    std::int64_t size;  // of the row

    constexpr TaskLayout(std::int64_t nv, std::int64_t k)
        : A(0), M(A + 6 * nv), J(M + nv * nv), h(J + 6 * nv * k), rate(h + nv), c(rate + 6),
          bias(c + 3), p(bias + 6 * k), R(p + 3 * k), size(R + 9 * k) {}
};

// Where the balance solver writes, of n copies.
struct BalanceOutput {
    double* acceleration;         // (n, nv)
    double* torque;               // (n, nv) of the joints, with friction cones
    double* momentum_rate;        // (n, 6) L' and H'
    double* angular_weight;       // (n) beta_a
    double* constraint_residual;  // (n)
    double* capture_point_error;  // (n) [m]
    double* desired_com;          // (n, 2) [m]
    double* com;                  // (n, 3) [m]
    double* mass;                 // (n) [kg]
    double* support_weight;       // (n, supports)
    double* contact_points;       // (n, sole_points, 3) [m]
    double* contact_forces;       // (n, sole_points, 3) [N], with friction cones
};

// The balance problem of n states. Points are the origins of the supports, then those of goals.
struct BalanceProblem {
    BalanceParams params;
    std::int64_t nv, supports, goals, sole_points;
    const double* sole_point;       // (sole_points, 4) which support, and the point in its frame
    const double* goal;             // (goals, 3) desired positions
    const double* tracking_weight;  // (nv)
    double gravity[3];
    const double* tasks;         // (n, TaskLayout::size) of the states
    const double* target_tasks;  // of the targets
    std::int64_t target_stride;  // doubles from one copy's target to the next; 0: they share it
    const double* a_des;         // (n, nv)
    Rows q, v, target_v, target_a;
    Rows schedule;  // (supports) scheduled weights; NaN: the target's height decides
    Rows friction;  // (supports)
    BalanceOutput out;
};

// One scalar type of one instruction set.
class Kernel {
  public:
    virtual int lanes() const = 0;
    virtual WorldKernel* make_world(const Forest& forest, const ModelParameters& parameters,
                                    const CollisionModel& collision_model, std::int64_t n,
                                    double dt, int threads) const = 0;
    // states begin .. end - 1, in steps of lanes()
    virtual void evaluate(const Forest& forest, const ModelParameters& parameters,
                          const Query& query, std::int64_t begin, std::int64_t end) const = 0;
    virtual void balance(const BalanceProblem& problem, std::int64_t begin,
                         std::int64_t end) const = 0;
    // two convex solids in n poses, (n, 2, 7): their nearest points, (n, 7), and their touches,
    // (n, 4, 7), with gap, normal and point each, no further than near
    virtual void collide(const Collider& a, const Collider& b, const double* pose, std::int64_t n,
                         double near, double* nearest, double* touches) const = 0;
    // ten times count multiply-adds in every lane, for benchmarks to time; returns their sum
    virtual double multiply_adds(std::int64_t count) const = 0;

  protected:
    ~Kernel() = default;  // kernels live as long as the program
};

// index 0: double, 1: float, 2: double in lanes, 3: float in lanes
const Kernel* kernels_baseline(int index);
const Kernel* kernels_avx2(int index);
const Kernel* kernels_avx512(int index);

}  // namespace poise
