// Bindings of the balance solver.
#include "balance.hpp"

#include <nanobind/stl/array.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "dispatch.hpp"
#include "float_mode.hpp"

namespace poise {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kLimit = 9;  // numbers of a joint's limit

const InArray& required(const SettingArray& setting, const char* name) {
    if (!setting.object.is_valid()) throw Error(std::string(name) + " is not set");
    return setting.array;
}

// rows of so many columns
const double* table(const SettingArray& setting, const char* name, std::int64_t& rows) {
    const InArray& array = required(setting, name);
    rows = setting.rows();
    check_finite(array.data(), static_cast<std::int64_t>(array.size()), name);
    return array.data();
}

const double* per_velocity(const SettingArray& setting, const char* name, std::int64_t nv) {
    const double* p = shaped(required(setting, name), name, {nv});
    check_finite(p, nv, name);
    return p;
}

// links, and points in them
void read_points(const double* points, std::int64_t count, const Model& model, Query& o) {
    o.points = points;
    o.point_count = static_cast<int>(count);
    for (int i = 0; i < o.point_count; ++i)
        if (!(o.points[4 * i] >= 0 && o.points[4 * i] < model.nl())) throw Error("no such link");
}

// Distance of a joint from its range. A row has: 1 for a ball, else 0; where its q and v begin;
// a ball's axis; its swing, least and greatest twist, or low and high of others.
double excess(const double* limit, const double* q) {
    const double* at = q + static_cast<int>(limit[1]);
    if (limit[0] == 0) return std::fmax(std::fmax(limit[7] - at[0], at[0] - limit[8]), 0.0);
    const double* u = at + 1;
    const double along = u[0] * limit[3] + u[1] * limit[4] + u[2] * limit[5];
    double twist = 2 * std::atan2(along, at[0]);
    twist -= 2 * kPi * std::nearbyint(twist / (2 * kPi));
    const double across = u[0] * u[0] + u[1] * u[1] + u[2] * u[2] - along * along;
    const double swing =
        2 * std::atan2(std::sqrt(std::fmax(across, 0.0)), std::hypot(at[0], along));
    return std::fmax(swing - limit[6], 0.0) +
           std::fmax(std::fmax(limit[7] - twist, twist - limit[8]), 0.0);
}

// Quantities of n states that the balance solver reads, by their names.
nb::dict balance_tasks(const Model& model, nb::object overrides, std::int64_t n, nb::object q,
                       nb::object v, nb::object gravity, nb::object points) {
    if (n < 1) throw Error("n must be 1 or more");
    InArray keep[4];
    Query o{};
    o.quantity = Quantity::tasks;
    o.n = n;
    o.q = query_rows(q, "q", n, model.nq(), keep[0]);
    o.v = query_rows(v, "v", n, model.nv(), keep[1]);
    const Rows g = query_rows(gravity, "gravity", 1, 3, keep[2]);
    keep[3] = array_in(points, "points");
    if (!o.q.p || !g.p || keep[3].size() % 4) throw Error("q, gravity or points are missing");
    model.check_q(o.q.p, o.q.copy ? n : 1, "q");
    check_finite(keep[3].data(), static_cast<std::int64_t>(keep[3].size()), "points");
    read_points(keep[3].data(), static_cast<std::int64_t>(keep[3].size() / 4), model, o);
    std::copy(g.p, g.p + 3, o.gravity);
    const std::int64_t nv = model.nv(), k = o.point_count;
    const TaskLayout layout(nv, k);
    std::vector<double> rows(n * layout.size);
    o.out0 = rows.data();
    const ModelParameters x = parameters_of(overrides, model, n);
    {
        nb::gil_scoped_release release;
        kernel(n > 1 ? 2 : 0).evaluate(model.forest(), x, o, 0, n);
    }
    nb::dict out;
    const auto put = [&](const char* name, std::int64_t at, std::vector<std::int64_t> shape) {
        OutArray array = make_array(shape);
        std::int64_t count = 1;
        for (std::size_t d = 1; d < shape.size(); ++d) count *= shape[d];
        for (std::int64_t i = 0; i < n; ++i)
            std::copy_n(rows.data() + i * layout.size + at, count, array.data() + i * count);
        out[name] = nb::cast(array);
    };
    put("A", layout.A, {n, 6, nv});
    put("M", layout.M, {n, nv, nv});
    put("J", layout.J, {n, k, 6, nv});
    put("h", layout.h, {n, nv});
    put("rate", layout.rate, {n, 6});
    put("c", layout.c, {n, 3});
    put("bias", layout.bias, {n, k, 6});
    put("p", layout.p, {n, k, 3});
    put("R", layout.R, {n, k, 3, 3});
    return out;
}

struct Busy {
    bool& flag;
    explicit Busy(bool& f) : flag(f) {
        if (flag) throw Error("another thread is planning with this controller");
        flag = true;
    }
    ~Busy() { flag = false; }
};

}  // namespace

BalancePlanner::BalancePlanner(nb::object model, nb::object params, nb::object overrides,
                               int threads)
    : owner_(model), settings_(params), overrides_(overrides),
      model_(nb::cast<const Model&>(model)), pool_(std::clamp(threads, 1, 256)) {
    if (!nb::isinstance<BalanceSettings>(params)) throw Error("params must be a BalanceParams");
    if (model_.forest().body[0].kind != Kind::free)
        throw Error("balance works for a character with a free root");
}

// gains of tracking: they grow beyond a joint's range (M 6.2)
void BalancePlanner::stiffen(const Rows& q, std::int64_t n, const BalanceSettings& settings) {
    const std::int64_t nv = model_.nv(), nq = model_.nq();
    std::int64_t count = 0;
    const double* k_s = per_velocity(settings.k_s, "k_s", nv);
    const double* k_d = per_velocity(settings.k_d, "k_d", nv);
    const double* limit = table(settings.joint_limits, "joint_limits", count);
    const double* more = settings.params.limit_gains;
    for (std::int64_t j = 0; j < count; ++j) {
        const double *row = limit + kLimit * j, wide = row[0] != 0 ? 4 : 1,
                     long_ = row[0] != 0 ? 3 : 1;
        if (!(row[1] >= 0 && row[1] + wide <= nq && row[2] >= 0 && row[2] + long_ <= nv))
            throw Error("joint_limits: no such joint");
    }
    kp_.resize(n * nv);
    kd_.resize(n * nv);
    for (std::int64_t i = 0; i < n; ++i) {
        double *kp = kp_.data() + i * nv, *kd = kd_.data() + i * nv;
        std::copy_n(k_s, nv, kp);
        std::copy_n(k_d, nv, kd);
        for (std::int64_t j = 0; j < count; ++j) {
            const double* row = limit + kLimit * j;
            const double out = excess(row, q.p + i * q.copy);
            if (!(out > 0)) continue;
            const int first = static_cast<int>(row[2]), size = row[0] != 0 ? 3 : 1;
            for (int k = first; k < first + size; ++k) {
                kp[k] += more[0] * out;
                kd[k] += more[1] * out;
            }
        }
    }
}

BalanceSolution BalancePlanner::solve(nb::object q, nb::object v, nb::object target_q,
                                      nb::object target_v, nb::object target_a, nb::object schedule,
                                      nb::object gravity) {
    const Busy busy(busy_);
    // a copy: its arrays stay while the lock is released, whatever is assigned meanwhile
    const BalanceSettings settings = nb::cast<const BalanceSettings&>(settings_);
    const std::int64_t nv = model_.nv(), nq = model_.nq();
    InArray keep[8];
    keep[0] = array_in(q, "q");
    const std::int64_t n = keep[0].ndim() == 2 ? static_cast<std::int64_t>(keep[0].shape(0)) : 1;
    if (n < 1) throw Error("q has no rows");

    // ---- tasks of the states
    Query now{}, drive{};
    now.quantity = Quantity::tasks;
    now.n = n;
    now.q = query_rows(q, "q", n, nq, keep[0]);
    now.v = query_rows(v, "v", n, nv, keep[1]);
    if (!now.v.p) throw Error("v is missing");
    model_.check_q(now.q.p, now.q.copy ? n : 1, "q");
    const Rows pull = query_rows(gravity, "gravity", 1, 3, keep[2]);
    if (!pull.p) throw Error("gravity is missing");
    std::copy_n(pull.p, 3, now.gravity);
    std::int64_t points = 0;
    const double* point = table(settings.points, "points", points);
    read_points(point, points, model_, now);
    const std::int64_t size = TaskLayout(nv, points).size;
    now_.resize(n * size);
    now.out0 = now_.data();

    // ---- and of the targets
    Query then = now;
    then.q = query_rows(target_q, "target.q", n, nq, keep[3]);
    then.v = query_rows(target_v, "target.v", n, nv, keep[4]);
    if (!then.q.p) throw Error("target.q is missing");
    model_.check_q(then.q.p, then.q.copy ? n : 1, "target.q");
    const ModelParameters x = parameters_of(overrides_, model_, n);
    // copies with masses of their own have targets of their own, too
    const bool own =
        then.q.copy || then.v.copy || x.mass_stride || x.mc_stride || x.Io_stride || x.fixed_stride;
    then.n = own ? n : 1;
    then.brief = true;
    then_.resize(then.n * size);
    then.out0 = then_.data();

    // ---- desired accelerations of tracking
    drive.quantity = Quantity::drive;
    drive.n = n;
    drive.q = now.q;
    drive.v = now.v;
    drive.target_q = then.q;
    drive.target_v = then.v;
    drive.target_a = query_rows(target_a, "target.a", n, nv, keep[5]);
    drive.form = Form::pd;
    stiffen(now.q, n, settings);
    drive.kp = {kp_.data(), 0, nv};
    drive.kd = {kd_.data(), 0, nv};
    a_des_.resize(n * nv);
    unused_.resize(n * nv);
    drive.out0 = a_des_.data();
    drive.out1 = unused_.data();

    // ---- the problem
    BalanceProblem problem{};
    problem.params = settings.params;
    problem.nv = nv;
    problem.sole_point = table(settings.sole_points, "sole_points", problem.sole_points);
    problem.goal = table(settings.goals, "goals", problem.goals);
    problem.supports = points - problem.goals;
    if (problem.supports < 1) throw Error("no point is left for a support");
    for (std::int64_t j = 0; j < problem.sole_points; ++j) {
        const double support = problem.sole_point[4 * j];
        if (!(support >= 0 && support < static_cast<double>(problem.supports)))
            throw Error("a sole point belongs to no support");
    }
    problem.tracking_weight = per_velocity(settings.tracking_weight, "tracking_weight", nv);
    if (std::any_of(problem.tracking_weight, problem.tracking_weight + nv,
                    [](double w) { return !(w > 0); }))
        throw Error("tracking_weight must be above 0");
    std::copy_n(pull.p, 3, problem.gravity);
    problem.tasks = now_.data();
    problem.target_tasks = then_.data();
    problem.target_stride = own ? size : 0;
    problem.a_des = a_des_.data();
    problem.q = now.q;
    problem.v = now.v;
    problem.target_v = then.v;
    problem.target_a = drive.target_a;
    required(settings.friction, "friction");
    problem.friction =
        query_rows(settings.friction.object, "friction", n, problem.supports, keep[6]);
    if (!schedule.is_none()) {
        keep[7] = array_in(schedule, "schedule");
        problem.schedule = {shaped(keep[7], "schedule", {n, problem.supports}), 0,
                            problem.supports};
    }

    const std::int64_t s = problem.supports, c = problem.sole_points;
    BalanceSolution found;
    BalanceOutput& out = problem.out;
    const auto make = [](nb::object& array, double*& data, std::vector<std::int64_t> shape) {
        OutArray made = make_array(shape);
        data = made.data();
        array = nb::cast(made);
    };
    make(found.acceleration, out.acceleration, {n, nv});
    make(found.torque, out.torque, {n, nv});
    make(found.momentum_rate, out.momentum_rate, {n, 6});
    make(found.angular_weight, out.angular_weight, {n});
    make(found.constraint_residual, out.constraint_residual, {n});
    make(found.capture_point_error, out.capture_point_error, {n});
    make(found.desired_com, out.desired_com, {n, 2});
    make(found.com, out.com, {n, 3});
    make(found.mass, out.mass, {n});
    make(found.support_weight, out.support_weight, {n, s});
    make(found.contact_points, out.contact_points, {n, c, 3});
    make(found.contact_forces, out.contact_forces, {n, c, 3});
    const Kernel& k = kernel(n > 1 ? 2 : 0);
    if (!own) kernel(0).evaluate(model_.forest(), x, then, 0, 1);
    const std::int64_t lanes = k.lanes();
    const Pool::Work work = [&](std::int64_t from, std::int64_t to, int) {
        const std::int64_t begin = from * lanes, end = std::min(to * lanes, n);
        k.evaluate(model_.forest(), x, now, begin, end);
        if (own) k.evaluate(model_.forest(), x, then, begin, end);
        k.evaluate(model_.forest(), x, drive, begin, end);
        k.balance(problem, begin, end);
    };
    {
        nb::gil_scoped_release release;
        pool_.run((n + lanes - 1) / lanes, work);
    }
    return found;
}

// ---- the classes in Python

namespace {

using Settings = BalanceSettings;
using Pair = std::array<double, 2>;

void flag(nb::class_<Settings>& c, const char* name, bool BalanceParams::* field, const char* doc) {
    c.def_prop_rw(
        name, [field](const Settings& s) { return s.params.*field; },
        [field](Settings& s, bool value) { s.params.*field = value; }, doc);
}

void number(nb::class_<Settings>& c, const char* name, double BalanceParams::* field,
            const char* doc) {
    c.def_prop_rw(
        name, [field](const Settings& s) { return s.params.*field; },
        [field, name](Settings& s, double value) {
            if (std::isnan(value)) throw Error(std::string(name) + " must be a number");
            s.params.*field = value;
        },
        doc);
}

void pair(nb::class_<Settings>& c, const char* name, double (BalanceParams::*field)[2],
          const char* doc) {
    c.def_prop_rw(
        name,
        [field](const Settings& s) { return Pair{(s.params.*field)[0], (s.params.*field)[1]}; },
        [field, name](Settings& s, const Pair& value) {
            check_finite(value.data(), 2, name);
            std::copy_n(value.data(), 2, s.params.*field);
        },
        doc);
}

// the signature of a property, for the stub; nanobind keeps the pointer
nb::sig typed(const char* name, const char* rest) {
    return nb::sig((new std::string(std::string("def ") + name + rest))->c_str());
}
nb::sig array_getter(const char* name) {
    return typed(name, "(self, /) -> numpy.typing.NDArray[numpy.float64]");
}

// columns: of a table; 0 for a row, -1 for a row or one for each copy
void array(nb::class_<Settings>& c, const char* name, SettingArray Settings::* field, int columns,
           const char* doc) {
    c.def_prop_rw(
        name,
        [field, name](const Settings& s) {
            required(s.*field, name);
            return (s.*field).object;
        },
        [field, name, columns](Settings& s, nb::object value) {
            InArray a = array_in(value, name);
            const bool good = columns > 0   ? a.ndim() == 2 && a.shape(1) == std::size_t(columns)
                              : columns < 0 ? a.ndim() == 1 || a.ndim() == 2
                                            : a.ndim() == 1;
            const char* row = columns < 0 ? "(s,) or (n, s)" : "(nv,)";
            if (!good)
                throw Error(std::string(name) + " has shape " + shape_text(shape_of(a)) +
                            ", expected " +
                            (columns > 0 ? "(k, " + std::to_string(columns) + ")" : row));
            check_finite(a.data(), static_cast<std::int64_t>(a.size()), name);
            s.*field = {value, a};
        },
        nb::for_getter(array_getter(name)),
        nb::for_setter(
            typed(name, "(self, value: numpy.typing.NDArray[numpy.float64], /) -> None")),
        doc);
}

void bind_params(nb::module_& m) {
    nb::class_<Settings> c(m, "BalanceParams",
                           "Settings of the balance solver; assigned fields hold from the next "
                           "solution on. Defaults of tuning constants are those of the core.");
    c.def(nb::init<>());
    using P = BalanceParams;
    flag(c, "linear", &P::linear, "Regulate the linear momentum.");
    flag(c, "angular", &P::angular, "Regulate the angular momentum.");
    flag(c, "friction_cones", &P::friction_cones,
         "Ground forces inside friction cones; else supports are equality constraints.");
    flag(c, "follow_motion", &P::follow_motion,
         "The desired center of mass follows that of the motion; else com_offset holds.");
    flag(c, "always_support", &P::always_support, "Every support should stand at all times.");
    pair(c, "linear_gains", &P::linear_gains, "k_s, k_d of the center of mass [1/s², 1/s].");
    pair(c, "support_gains", &P::support_gains, "k_s, k_d of a support [1/s², 1/s].");
    pair(c, "goal_gains", &P::goal_gains, "k_s, k_d of a goal [1/s², 1/s].");
    pair(c, "limit_gains", &P::limit_gains,
         "Added to k_s, k_d per radian beyond a joint's range [1/s², 1/s].");
    number(c, "linear_weight", &P::linear_weight, "β_l, weight of the linear objective.");
    number(c, "gamma", &P::gamma, "γ, weight of the angular objective per CMP offset [1/m].");
    number(c, "goal_weight", &P::goal_weight, "β_p, weight of each goal.");
    number(c, "max_cmp_offset", &P::max_cmp_offset,
           "Largest distance from the desired CoP to the desired CMP [m].");
    number(c, "margin", &P::margin, "Distance of the desired CoP from the edge of the soles [m].");
    number(c, "ground_height", &P::ground_height, "Height of the ground [m].");
    pair(c, "com_offset", &P::com_offset,
         "Desired center of mass from the center of the supports [m].");
    pair(c, "sole_height_fade", &P::sole_height_fade,
         "Heights of a sole between which its support weight goes from 1 to 0 [m].");
    pair(c, "target_height_fade", &P::target_height_fade, "The same of the target's sole [m].");
    pair(c, "tilt_fade", &P::tilt_fade,
         "The same by 1 - cos of the angle between a sole and the target's.");
    pair(c, "lean_fade", &P::lean_fade,
         "The same by the distance of the center of mass from all soles over its height.");
    number(c, "press_acceleration", &P::press_acceleration,
           "Downward acceleration of a support that does not touch the ground [m/s²].");
    number(c, "max_goal_distance", &P::max_goal_distance,
           "A goal farther away pulls as if it were this far [m].");
    number(c, "fading_weight", &P::fading_weight,
           "Weight of a support of weight 1/2 beside tracking at 1.");
    number(c, "support_weight", &P::support_weight,
           "Weight of a support beside tracking at 1, with friction cones.");
    number(c, "hard_threshold", &P::hard_threshold,
           "Supports of this weight on are constraints, without friction cones.");
    number(c, "force_regularization", &P::force_regularization,
           "Of ground forces, relative to the largest entry of the quadratic form.");
    number(c, "rank_tolerance", &P::rank_tolerance,
           "Constraint rows smaller than this beside the largest drop out.");
    number(c, "capture_time", &P::capture_time,
           "Time ahead at which the capture point error is measured [s].");
    array(c, "points", &Settings::points, 4,
          "Link and place in it [m] of supports, then of goals, shape (k, 4).");
    array(c, "sole_points", &Settings::sole_points, 4,
          "Support and place in its link [m], shape (c, 4).");
    array(c, "goals", &Settings::goals, 3, "Desired positions of the goals [m], shape (g, 3).");
    array(c, "tracking_weight", &Settings::tracking_weight, 0, "W, above 0, shape (nv,).");
    array(c, "k_s", &Settings::k_s, 0, "Stiffness of tracking [1/s²], shape (nv,).");
    array(c, "k_d", &Settings::k_d, 0, "Damping of tracking [1/s], shape (nv,).");
    array(c, "joint_limits", &Settings::joint_limits, kLimit,
          "Joints with a range, shape (m, 9): 1 for a ball, where q and v begin, axis, and swing "
          "and twist, or 0 and low and high.");
    array(c, "friction", &Settings::friction, -1,
          "Coefficients of supports and ground, shape (s,) or (n, s).");
}

void array(nb::class_<BalanceSolution>& c, const char* name, nb::object BalanceSolution::* field,
           const char* doc) {
    c.def_prop_ro(
        name, [field](const BalanceSolution& s) { return s.*field; },
        nb::for_getter(array_getter(name)), doc);
}

}  // namespace

void bind_balance(nb::module_& m) {
    m.def("balance_tasks", &balance_tasks, "model"_a, "overrides"_a.none(), "n"_a, "q"_a, "v"_a,
          "gravity"_a, "points"_a, nb::call_guard<KernelFloatMode>(),
          "Momentum, inertia and points of n states, by name, for reference implementations.");
    bind_params(m);
    nb::class_<BalanceSolution> c(m, "BalanceSolution",
                                  "Solutions of the balance problem of n copies.");
    array(c, "acceleration", &BalanceSolution::acceleration,
          "Generalized accelerations, shape (n, nv).");
    array(c, "torque", &BalanceSolution::torque,
          "Joint torques, with friction cones [N·m], shape (n, nv).");
    array(c, "momentum_rate", &BalanceSolution::momentum_rate, "L̇ and Ḣ [N, N·m], shape (n, 6).");
    array(c, "angular_weight", &BalanceSolution::angular_weight, "β_a, shape (n,).");
    array(c, "constraint_residual", &BalanceSolution::constraint_residual,
          "Residual of the equality constraints [m/s², rad/s²], shape (n,).");
    array(c, "capture_point_error", &BalanceSolution::capture_point_error,
          "Distance from the desired center of mass to where its velocity leads it [m], "
          "shape (n,).");
    array(c, "desired_com", &BalanceSolution::desired_com,
          "Desired center of mass [m], NaN without supports, shape (n, 2).");
    array(c, "com", &BalanceSolution::com, "Center of mass [m], shape (n, 3).");
    array(c, "mass", &BalanceSolution::mass, "[kg], shape (n,).");
    array(c, "support_weight", &BalanceSolution::support_weight,
          "Of each support, 0 to 1, shape (n, s).");
    array(c, "contact_points", &BalanceSolution::contact_points,
          "Sole points in the world [m], shape (n, c, 3).");
    array(c, "contact_forces", &BalanceSolution::contact_forces,
          "Ground forces on them, with friction cones [N], shape (n, c, 3).");
    nb::class_<BalancePlanner>(m, "BalancePlanner", "Solves the balance problem of n copies.")
        .def(nb::init<nb::object, nb::object, nb::object, int>(), "model"_a, "params"_a,
             "overrides"_a.none(), "threads"_a)
        .def_prop_ro("params", &BalancePlanner::params, "Its settings.")
        .def("solve", &BalancePlanner::solve, "q"_a, "v"_a, "target_q"_a, "target_v"_a.none(),
             "target_a"_a.none(), "schedule"_a.none(), "gravity"_a,
             nb::call_guard<KernelFloatMode>(),
             "Solves for n states and targets; rows or one row for all. The schedule has the "
             "support weights, shape (n, s), NaN where the target's height decides.");
}

}  // namespace poise
