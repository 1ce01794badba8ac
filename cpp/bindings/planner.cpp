// Plans of a controller of balance.
#include "planner.hpp"

#include <algorithm>
#include <cmath>

#include "dispatch.hpp"
#include "float_mode.hpp"

namespace poise {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kLimit = 9;  // numbers of a joint's limit

double of(nb::handle ask, const char* name) {
    // first the attribute, which may be missing: try_cast may not throw
    const nb::object given = ask.attr(name);
    double value = 0;
    if (!nb::try_cast(given, value) || std::isnan(value))
        throw Error(std::string(name) + " must be a number");
    return value;
}

void pair_of(nb::handle ask, const char* name, double* out) {
    const nb::object given = ask.attr(name);
    std::tuple<double, double> pair;
    if (!nb::try_cast(given, pair)) throw Error(std::string(name) + " must be a pair");
    out[0] = std::get<0>(pair);
    out[1] = std::get<1>(pair);
    check_finite(out, 2, name);
}

const double* table(nb::handle ask, const char* name, std::int64_t columns, InArray& keep,
                    std::int64_t& rows) {
    keep = array_in(ask.attr(name), name);
    if (keep.ndim() != 2 || static_cast<std::int64_t>(keep.shape(1)) != columns)
        throw Error(std::string(name) + " has shape " + shape_text(shape_of(keep)) +
                    ", expected (k, " + std::to_string(columns) + ")");
    rows = static_cast<std::int64_t>(keep.shape(0));
    check_finite(keep.data(), rows * columns, name);
    return keep.data();
}

// which links, and where in them
void read_points(const InArray& points, const Model& model, Query& o) {
    check_finite(points.data(), static_cast<std::int64_t>(points.size()), "points");
    o.points = points.data();
    o.point_count = static_cast<int>(points.size() / 4);
    for (int i = 0; i < o.point_count; ++i)
        if (!(o.points[4 * i] >= 0 && o.points[4 * i] < model.nl())) throw Error("no such link");
}

// How far a joint is outside of its range. A row has: 1 of a ball, else 0; where its q and v begin;
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

// All numbers of `task_size` about n states, shape (n, size).
nb::object tasks(const Model& model, nb::object overrides, std::int64_t n, nb::object q,
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
    read_points(keep[3], model, o);
    std::copy(g.p, g.p + 3, o.gravity);
    OutArray out = make_array({n, task_size(model.nv(), o.point_count)});
    o.out0 = out.data();
    const ModelParameters x = parameters_of(overrides, model, n);
    {
        nb::gil_scoped_release release;
        kernel(n > 1 ? 2 : 0).evaluate(model.forest(), x, o, 0, n);
    }
    return nb::cast(out);
}

}  // namespace

Planner::Planner(nb::object model, int threads)
    : owner_(model), model_(nb::cast<const Model&>(model)), pool_(std::clamp(threads, 1, 256)) {
    if (model_.forest().body[0].kind != Kind::free)
        throw Error("balance works for a character with a free root");
}

// gains of tracking: they grow beyond a joint's range (M 6.2)
void Planner::stiffen(const Rows& q, std::int64_t n, nb::handle ask) {
    const std::int64_t nv = model_.nv(), nq = model_.nq();
    InArray keep[3];
    std::int64_t count = 0;
    const Rows k_s = query_rows(ask.attr("k_s"), "k_s", 1, nv, keep[0]);
    const Rows k_d = query_rows(ask.attr("k_d"), "k_d", 1, nv, keep[1]);
    const double* limit = table(ask, "limits", kLimit, keep[2], count);
    if (!k_s.p || !k_d.p) throw Error("k_s or k_d is missing");
    double more[2];
    pair_of(ask, "stiffening", more);
    for (std::int64_t j = 0; j < count; ++j) {
        const double *row = limit + kLimit * j, wide = row[0] != 0 ? 4 : 1,
                     long_ = row[0] != 0 ? 3 : 1;
        if (!(row[1] >= 0 && row[1] + wide <= nq && row[2] >= 0 && row[2] + long_ <= nv))
            throw Error("limits: no such joint");
    }
    kp_.resize(n * nv);
    kd_.resize(n * nv);
    for (std::int64_t i = 0; i < n; ++i) {
        double *kp = kp_.data() + i * nv, *kd = kd_.data() + i * nv;
        std::copy_n(k_s.p, nv, kp);
        std::copy_n(k_d.p, nv, kd);
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

nb::tuple Planner::plan(nb::object overrides, nb::object ask, std::int64_t n, nb::object q,
                        nb::object v, nb::object target_q, nb::object target_v, nb::object target_a,
                        nb::object when, nb::object gravity) {
    if (n < 1) throw Error("n must be 1 or more");
    if (busy_) throw Error("another thread is planning with this controller");
    struct Busy {
        bool& flag;
        explicit Busy(bool& f) : flag(f) { flag = true; }
        ~Busy() { flag = false; }
    };
    const Busy busy(busy_);
    const std::int64_t nv = model_.nv(), nq = model_.nq();
    InArray keep[12];
    std::int64_t points = 0;
    Query now{}, drive{};
    now.quantity = Quantity::tasks;
    now.n = n;
    now.q = query_rows(q, "q", n, nq, keep[0]);
    now.v = query_rows(v, "v", n, nv, keep[1]);
    if (!now.q.p || !now.v.p) throw Error("q or v is missing");
    model_.check_q(now.q.p, now.q.copy ? n : 1, "q");
    const Rows pull = query_rows(gravity, "gravity", 1, 3, keep[2]);
    if (!pull.p) throw Error("gravity is missing");
    std::copy_n(pull.p, 3, now.gravity);
    table(ask, "points", 4, keep[3], points);
    read_points(keep[3], model_, now);
    const std::int64_t size = task_size(nv, points);
    now_.resize(n * size);
    now.out0 = now_.data();

    Query then = now;
    then.q = query_rows(target_q, "target.q", n, nq, keep[4]);
    then.v = query_rows(target_v, "target.v", n, nv, keep[5]);
    if (!then.q.p) throw Error("target.q is missing");
    model_.check_q(then.q.p, then.q.copy ? n : 1, "target.q");
    const ModelParameters x = parameters_of(overrides, model_, n);
    // copies of their own masses have their own targets, too
    const bool own =
        then.q.copy || then.v.copy || x.mass_stride || x.mc_stride || x.Io_stride || x.fixed_stride;
    then.n = own ? n : 1;
    then.brief = true;
    then_.resize(then.n * size);
    then.out0 = then_.data();

    drive.quantity = Quantity::drive;
    drive.n = n;
    drive.q = now.q;
    drive.v = now.v;
    drive.target_q = then.q;
    drive.target_v = then.v;
    drive.form = Form::pd;
    stiffen(now.q, n, ask);
    drive.kp = {kp_.data(), 0, nv};
    drive.kd = {kd_.data(), 0, nv};
    a_des_.resize(n * nv);
    unused_.resize(n * nv);
    drive.out0 = a_des_.data();
    drive.out1 = unused_.data();

    PlanCall call{};
    call.nv = nv;
    call.corner = table(ask, "corners", 4, keep[6], call.corners);
    call.goal = table(ask, "goals", 3, keep[7], call.goals);
    call.soles = points - call.goals;
    if (call.soles < 1) throw Error("no point is left for a sole");
    for (std::int64_t j = 0; j < call.corners; ++j)
        if (!(call.corner[4 * j] >= 0 && call.corner[4 * j] < static_cast<double>(call.soles)))
            throw Error("a corner belongs to no sole");
    const Rows weight = query_rows(ask.attr("weight"), "weight", 1, nv, keep[8]);
    if (!weight.p || std::any_of(weight.p, weight.p + nv, [](double w) { return !(w > 0); }))
        throw Error("weights of tracking must be above 0");
    call.weight = weight.p;
    pair_of(ask, "k_support", call.k_support);
    pair_of(ask, "k_linear", call.k_linear);
    pair_of(ask, "k_goal", call.k_goal);
    pair_of(ask, "lifts", call.lifts);
    pair_of(ask, "leaves", call.leaves);
    pair_of(ask, "tilts", call.tilts);
    pair_of(ask, "leans", call.leans);
    pair_of(ask, "center", call.center);
    const std::pair<const char*, double*> plain[] = {{"beta_linear", &call.beta_linear},
                                                     {"gamma", &call.gamma},
                                                     {"reach", &call.reach},
                                                     {"margin", &call.margin},
                                                     {"ground", &call.ground},
                                                     {"goal_weight", &call.goal_weight},
                                                     {"farthest", &call.farthest},
                                                     {"press", &call.press},
                                                     {"soft", &call.soft},
                                                     {"firm", &call.firm},
                                                     {"held", &call.held},
                                                     {"ease", &call.ease},
                                                     {"rank", &call.rank},
                                                     {"ahead", &call.ahead}};
    for (const auto& [name, to] : plain) *to = of(ask, name);
    const std::pair<const char*, bool*> flags[] = {{"linear", &call.linear},
                                                   {"angular", &call.angular},
                                                   {"cones", &call.cones},
                                                   {"motion", &call.motion},
                                                   {"always", &call.always}};
    for (const auto& [name, to] : flags) *to = nb::cast<bool>(ask.attr(name));
    std::copy_n(pull.p, 3, call.gravity);
    call.tasks = now_.data();
    call.then = then_.data();
    call.then_copy = own ? size : 0;
    call.a_des = a_des_.data();
    call.q = now.q;
    call.v = now.v;
    call.target_v = then.v;
    call.target_a = query_rows(target_a, "target.a", n, nv, keep[9]);
    call.friction = query_rows(ask.attr("friction"), "friction", n, call.soles, keep[11]);
    if (!call.friction.p) throw Error("friction is missing");
    if (!when.is_none()) {
        keep[10] = array_in(when, "when");
        const double* at = shaped(keep[10], "when", {n, call.soles});
        call.when = {at, 0, call.soles};
    }

    OutArray a = make_array({n, nv}), torque = make_array({n, nv}),
             told = make_array({n, told_size(call.soles, call.corners)});
    call.a = a.data();
    call.torque = torque.data();
    call.told = told.data();
    const Kernel& k = kernel(n > 1 ? 2 : 0);
    if (!own) kernel(0).evaluate(model_.forest(), x, then, 0, 1);
    const std::int64_t lanes = k.lanes();
    const Pool::Work work = [&](std::int64_t from, std::int64_t to, int) {
        const std::int64_t begin = from * lanes, end = std::min(to * lanes, n);
        k.evaluate(model_.forest(), x, now, begin, end);
        if (own) k.evaluate(model_.forest(), x, then, begin, end);
        k.evaluate(model_.forest(), x, drive, begin, end);
        const Rows& ta = call.target_a;
        for (std::int64_t i = begin; i < end && ta.p; ++i)
            for (std::int64_t j = 0; j < nv; ++j) a_des_[i * nv + j] += ta.p[i * ta.copy + j];
        k.plan(call, begin, end);
    };
    {
        nb::gil_scoped_release release;
        pool_.run((n + lanes - 1) / lanes, work);
    }
    return nb::make_tuple(a, torque, told);
}

void bind_planner(nb::module_& m) {
    m.def("tasks", &tasks, "model"_a, "overrides"_a.none(), "n"_a, "q"_a, "v"_a, "gravity"_a,
          "points"_a, nb::call_guard<KernelFloatMode>(),
          "Momentum, inertia, and points of n states, for controllers.");
    nb::class_<Planner>(m, "Planner", "Plans of a controller of balance.")
        .def(nb::init<nb::object, int>(), "model"_a, "threads"_a)
        .def("plan", &Planner::plan, "overrides"_a.none(), "ask"_a, "n"_a, "q"_a, "v"_a,
             "target_q"_a, "target_v"_a.none(), "target_a"_a.none(), "when"_a.none(), "gravity"_a,
             nb::call_guard<KernelFloatMode>());
}

}  // namespace poise
