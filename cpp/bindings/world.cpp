#include "world.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "dispatch.hpp"

namespace poise {

namespace {

constexpr int kMostThreads = 256;

// Marks a world as in use.
struct Busy {
    bool& flag;
    explicit Busy(bool& f) : flag(f) { flag = true; }
    ~Busy() { flag = false; }
};

constexpr double kUnheard = 0.05;  // Ctrl-C waits about as long [s]
constexpr double kNever = -std::numeric_limits<double>::infinity();

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

// beyond this a copy is lost anyway, and single precision ends soon after
void check_size(const double* p, std::int64_t count, const char* name) {
    for (std::int64_t i = 0; i < count; ++i)
        if (std::fabs(p[i]) > 1e12)
            throw Error(std::string(name) + " holds " + std::to_string(p[i]) + " (flat index " +
                        std::to_string(i) + "); every entry must be within 1e12 of 0");
}

void check_gain(const std::vector<double>& k, int nv, const Model& model, const char* name) {
    for (std::size_t i = 0; i < k.size(); ++i) {
        if (k[i] >= 0 && k[i] <= 1e15) continue;
        const int body = model.forest().dof_body[i % nv];
        throw Error(std::string(name) + " of joint '" + model.joint_name(body) + "' is " +
                    std::to_string(k[i]) + "; gains must be 0 or more, and at most 1e15");
    }
}

}  // namespace

Gains::Gains(const Model& model, nb::object kp, nb::object kd, nb::object pin)
    : id(next_id()), signature(model.signature()), copies(1), nv(model.nv()), nl(model.nl()) {
    const InArray a = array_in(kp, "kp");
    const auto shape = shape_of(a);
    if (shape.size() == 2) copies = shape[0];
    if (shape.size() < 1 || shape.size() > 2 || shape.back() != nv || copies < 1)
        throw Error("kp has shape " + shape_text(shape) + ", expected (" + std::to_string(nv) +
                    ",) or (n, " + std::to_string(nv) + ")");
    kp_ = copy_in(kp, "kp", shape);
    kd_ = copy_in(kd, "kd", shape);
    pin_ = copy_in(pin, "pin", {nl, 4});
    check_gain(kp_, nv, model, "kp");
    check_gain(kd_, nv, model, "kd");
    for (double x : pin_)
        if (!(x >= 0)) throw Error("pin gains must be 0 or more");
    if (shape.size() == 1) copies = 1;
}

Gains::Gains(const State& state)
    : id(next_id()), signature(std::get<0>(state)), copies(std::get<1>(state)),
      nv(std::get<2>(state)), nl(std::get<3>(state)), kp_(std::get<4>(state)),
      kd_(std::get<5>(state)), pin_(std::get<6>(state)) {
    const auto size = [](const std::vector<double>& x) {
        return static_cast<std::int64_t>(x.size());
    };
    if (copies < 1 || copies > (std::int64_t(1) << 31) || nv < 0 || nl < 0 ||
        size(kp_) != copies * nv || size(kd_) != copies * nv ||
        size(pin_) != 4 * static_cast<std::int64_t>(nl))
        throw Error("this is no pickle of gains");
    for (const auto* table : {&kp_, &kd_, &pin_})
        for (const double x : *table)
            if (!(x >= 0 && x <= 1e15)) throw Error("gains must be 0 or more, and at most 1e15");
}

GainTable Gains::table() const {
    return {kp_.data(), kd_.data(), copies > 1 ? nv : 0, pin_.data()};
}

namespace {

const Model& model_in(nb::handle h) {
    if (!nb::isinstance<Model>(h)) throw Error("model must be a Model");
    return nb::cast<const Model&>(h);
}

}  // namespace

Drive::Drive(nb::object gains, nb::object q, nb::object v, nb::object a, int row_count,
             nb::object strength_in, nb::object pin_in, nb::object form_in, int method_in,
             bool embedded_in, nb::object feedforward_in)
    : target_q(q), target_v(v), target_a(a), strength(strength_in), pin(pin_in), form(form_in),
      feedforward(feedforward_in), rows(row_count), method(method_in), embedded(embedded_in),
      owner_(gains) {
    if (!nb::isinstance<Gains>(gains)) throw Error("gains must be Gains");
    gains_ = &nb::cast<const Gains&>(gains);
    q_ = array_in(q, "target.q");
    if (!v.is_none()) v_ = array_in(v, "target.v");
    if (!a.is_none()) a_ = array_in(a, "target.a");
    if (!strength.is_none()) strength_ = array_in(strength, "strength");
    if (!pin.is_none()) pin_ = array_in(pin, "pin");
    if (rows < 0) throw Error("rows must be 0 or more");
    if (method < 0 || method > 3) throw Error("no such method");
    if (nb::isinstance<nb::int_>(form)) {
        form_ = nb::cast<int>(form);
        if (form_ < 0 || form_ > 3) throw Error("no such form");
    } else {
        if (!try_array(form, forms_) || forms_.ndim() != 1)
            throw Error("form must be a number, or one of each degree of freedom");
        const std::uint8_t* p = forms_.data();
        if (std::any_of(p, p + forms_.size(), [](std::uint8_t x) { return x > 3; }))
            throw Error("no such form");
    }
    if (nb::isinstance<nb::bool_>(feedforward)) feedforward_ = nb::cast<bool>(feedforward);
    else if (!try_array(feedforward, fed_) || fed_.ndim() != 1)
        throw Error("feedforward must be True, False or a boolean array of shape " +
                    shape_text({gains_->nv}));
    else feedforward_ = true;
}

World::World(nb::object model, nb::object whole, std::int64_t n, double dt, bool single_precision,
             int threads, nb::object gravity, nb::object overrides, nb::object collision_model)
    : owner_(model), whole_owner_(whole), model_(model_in(model)), whole_(model_in(whole)), n_(n),
      dt_(dt), pool_(std::clamp(threads, 1, kMostThreads)), push_until_(kNever) {
    if (n < 1) throw Error("n is " + std::to_string(n) + "; a world has at least one copy");
    if (!(dt > 0) || !std::isfinite(dt))
        throw Error("dt is " + std::to_string(dt) + " s; it must be positive");
    set_gravity(gravity);
    time_.assign(n, 0);
    all_.resize(n);
    std::iota(all_.begin(), all_.end(), 0);
    const CollisionModel& t = collision_model_.read(collision_model, whole_, n);
    if (model_.nq() + 7 * t.projectiles.count != whole_.nq())
        throw Error("these models do not match");
    projectile_size_ = t.projectiles.count * kProjectile;
    impulse_size_ = t.model == ContactModel::none ? 0 : 3 * t.slots;
    memory_size_ = kMemory + projectile_size_ + impulse_size_;
    memory_.assign(n * kMemory, 0);
    frozen_.assign(n, 0);
    fault_.assign(n, Fault{-1, false, 0});

    overrides_ = overrides;
    const ModelParameters x = parameters_of(overrides, whole_, n);
    const Kernel& k = kernel((n > 1 ? 2 : 0) + (single_precision ? 1 : 0));
    isa_ = n > 1 ? chosen_isas().batch : chosen_isas().single;
    kernel_.reset(k.make_world(whole_.forest(), x, t, n, dt, pool_.size()));
}

void World::set_gravity(nb::object gravity) {
    check_idle();
    const InArray a = array_in(gravity, "gravity");
    if (a.ndim() != 1 || a.shape(0) != 3) shaped(a, "gravity", {3});
    check_finite(a.data(), 3, "gravity");
    std::copy_n(a.data(), 3, gravity_);
}

void World::check_idle() const {
    if (busy_) throw Error("another thread is stepping this world; wait until its step is done");
}

void World::share(bool threads, const Pool::Work& work) {
    const Busy busy(busy_);
    nb::gil_scoped_release release;
    if (threads) pool_.run(kernel_->tiles(), work);
    else work(0, kernel_->tiles(), 0);
}

void World::run(const ReadCall& call, std::int64_t numbers) {
    // to wake a thread takes as long as to copy some ten thousand numbers
    share(numbers > 30000, [&](std::int64_t begin, std::int64_t end, int thread) {
        kernel_->read(call, begin, end, thread);
    });
}

nb::tuple World::read() {
    check_idle();
    OutArray q = make_array({n_, model_.nq()}), v = make_array({n_, model_.nv()});
    ReadCall call;
    call.q = {q.data(), false};
    call.v = {v.data(), false};
    run(call, n_ * (model_.nq() + model_.nv()));
    return nb::make_tuple(q, v);
}

nb::ndarray<nb::c_contig, nb::device::cpu> World::array_out(nb::handle h, const std::string& name,
                                                            std::vector<std::int64_t> shape,
                                                            bool flags) const {
    const std::string kind = flags ? "bool" : "float32 or float64";
    nb::ndarray<nb::c_contig, nb::device::cpu> a;
    if (h.is_none() || !nb::try_cast(h, a, false))
        throw Error(name + " must be a writable, C-contiguous array of " + kind + ", not " +
                    described(h));
    const bool known = flags ? a.dtype() == nb::dtype<bool>()
                             : a.dtype() == nb::dtype<double>() || a.dtype() == nb::dtype<float>();
    std::vector<std::int64_t> given;
    for (std::size_t i = 0; i < a.ndim(); ++i)
        given.push_back(static_cast<std::int64_t>(a.shape(i)));
    shape.insert(shape.begin(), n_);
    const std::vector<std::int64_t> one(shape.begin() + 1, shape.end());
    if (!known || (given != shape && !(n_ == 1 && given == one)))
        throw Error(name + " has shape " + shape_text(given) + " and is a " + described(h) +
                    "; it must be C-contiguous, of " + kind + " and of shape " +
                    shape_text(n_ == 1 ? one : shape));
    if (reinterpret_cast<std::uintptr_t>(a.data()) % a.itemsize())
        throw Error(name + " is not aligned; np.empty makes arrays that are");
    return a;
}

void World::read_into(nb::dict fields, nb::object links, nb::object pairs) {
    check_idle();
    ReadCall call;
    call.dt = dt_;
    std::vector<std::int32_t> link(model_.nl()), column(model_.nl(), -1);
    std::iota(link.begin(), link.end(), 0);
    if (!links.is_none()) {
        const InInts in = ints_in(links, "links");
        if (in.ndim() != 1) throw Error("links must have shape (k,)");
        link.assign(in.data(), in.data() + in.size());
    }
    const auto nl = static_cast<std::int64_t>(link.size());
    for (std::int32_t i = 0; i < nl; ++i) {
        if (link[i] < 0 || link[i] >= model_.nl() || column[link[i]] >= 0)
            throw Error("links: " + std::to_string(link[i]) + " is no link, or is named twice");
        column[link[i]] = i;
    }
    call.link = link.data();
    call.link_column = column.data();
    call.links = nl;
    std::vector<LinkPair> pair;
    if (!pairs.is_none()) {
        const InInts in = ints_in(pairs, "pairs");
        if (in.ndim() != 2 || in.shape(1) != 2) throw Error("pairs must have shape (k, 2)");
        call.pair_columns = static_cast<std::int64_t>(in.shape(0));
        for (std::int32_t i = 0; i < call.pair_columns; ++i) {
            const std::int32_t one = in.data()[2 * i], two = in.data()[2 * i + 1];
            const bool turned = two >= 0 && two < one;
            pair.push_back({turned ? two : one, turned ? one : two, i, turned ? -1 : 1});
        }
        std::sort(pair.begin(), pair.end(), [](const LinkPair& a, const LinkPair& b) {
            return a.link != b.link ? a.link < b.link : a.other < b.other;
        });
        call.pair = pair.data();
        call.pair_entries = call.pair_columns;
    }
    const std::int64_t nq = model_.nq(), nv = model_.nv(), k = call.pair_columns;
    struct Field {
        const char* name;
        OutRows* out;
        std::vector<std::int64_t> shape;
    };
    const Field numbers[] = {
        {"q", &call.q, {nq}},
        {"v", &call.v, {nv}},
        {"torque", &call.torque, {nv}},
        {"link_position", &call.link_position, {nl, 3}},
        {"link_quat", &call.link_quat, {nl, 4}},
        {"link_velocity", &call.link_velocity, {nl, 3}},
        {"link_angular_velocity", &call.link_angular_velocity, {nl, 3}},
        {"link_contact_force", &call.link_contact_force, {nl, 3}},
        {"pair_contact_force", &call.pair_contact_force, {k, 3}},
    };
    std::int64_t count = 0;
    std::vector<nb::ndarray<nb::c_contig, nb::device::cpu>> keep;
    void* clocks = nullptr;
    bool single_clocks = false;
    for (auto [key, value] : fields) {
        const std::string name = nb::cast<std::string>(nb::str(key));
        const auto take = [&](const std::vector<std::int64_t>& shape, bool flags) {
            keep.push_back(array_out(value, name, shape, flags));
            count += static_cast<std::int64_t>(keep.back().size());
            return keep.back().data();
        };
        const auto single = [&] { return keep.back().dtype() == nb::dtype<float>(); };
        const auto found = std::find_if(std::begin(numbers), std::end(numbers),
                                        [&](const Field& x) { return x.name == name; });
        if (found != std::end(numbers)) {
            found->out->p = take(found->shape, false);
            found->out->single_precision = single();
        } else if (name == "time") {
            clocks = take({}, false);
            single_clocks = single();
        } else if (name == "link_contact") {
            call.link_contact = static_cast<bool*>(take({nl}, true));
        } else if (name == "pair_contact") {
            call.pair_contact = static_cast<bool*>(take({k}, true));
        } else {
            throw Error("a world has no field '" + name + "'");
        }
    }
    for (std::int64_t i = 0; clocks && i < n_; ++i)
        if (single_clocks) static_cast<float*>(clocks)[i] = static_cast<float>(time_[i]);
        else static_cast<double*>(clocks)[i] = time_[i];
    run(call, count);
}

nb::tuple World::ray(nb::object origin, nb::object direction, double farthest, bool ground,
                     bool links, nb::object skipped, std::int64_t nothing) {
    check_idle();
    const CollisionModel& x = collision_model_.view();
    if (x.model == ContactModel::none)
        throw Error("nothing can be hit: this world is built with contact=None");
    if (!(farthest > 0)) throw Error("max_distance must be positive [m]");
    RayCall call;
    InArray keep[2];
    const auto take = [&](nb::handle h, const char* name, int i, std::int64_t& stride) {
        keep[i] = array_in(h, name);
        const auto shape = shape_of(keep[i]);
        const bool own = shape.size() == 3;
        if ((shape.size() != 2 && !(own && shape[0] == n_)) || shape.back() != 3)
            throw Error(std::string(name) + " has shape " + shape_text(shape) +
                        ", expected (k, 3) or (" + std::to_string(n_) + ", k, 3)");
        const std::int64_t k = shape[shape.size() - 2];
        if (i && k != call.k)
            throw Error("origins are " + std::to_string(call.k) + " and directions " +
                        std::to_string(k) + "; each ray has both");
        call.k = k;
        stride = own ? 3 * k : 0;
        check_finite(keep[i].data(), static_cast<std::int64_t>(keep[i].size()), name);
        check_size(keep[i].data(), static_cast<std::int64_t>(keep[i].size()), name);
        return keep[i].data();
    };
    call.origin = take(origin, "origins", 0, call.origin_stride);
    call.direction = take(direction, "directions", 1, call.direction_stride);
    for (std::size_t i = 0; i < keep[1].size(); i += 3) {
        const double* d = call.direction + i;
        if (!(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > 1e-200))
            throw Error("directions: ray " + std::to_string(i / 3 % call.k) + " has length 0");
    }
    const auto skip = copy_ints(skipped, "skipped", whole_.nl());
    const std::vector<std::uint8_t> mask(skip.begin(), skip.end());
    call.skipped = mask.data();
    call.farthest = farthest;
    call.ground = ground;
    call.links = links;
    call.nothing = nothing;
    OutArray distance = make_array({n_, call.k}), normal = make_array({n_, call.k, 3});
    auto link = make_ints(n_ * call.k);
    call.distance = distance.data();
    call.normal = normal.data();
    call.link = link.data();
    share(n_ * call.k > 256, [&](std::int64_t begin, std::int64_t end, int thread) {
        kernel_->cast_rays(call, begin, end, thread);
    });
    return nb::make_tuple(distance, normal, link);
}

void World::write_inertia(nb::object mass, nb::object mc, nb::object Io, nb::object copies) {
    check_idle();
    std::vector<std::int64_t> keep;
    const Copies which = copies_in(copies, keep);
    const std::int64_t k = which.count, count = whole_.nb_();
    const auto m = copy_in(mass, "mass", {k, count}), c = copy_in(mc, "mc", {k, count, 3}),
               I = copy_in(Io, "Io", {k, count, 6});
    kernel_->write_inertia(m.data(), c.data(), I.data(), which);
}

void World::write_friction(nb::object friction, nb::object copies) {
    check_idle();
    std::vector<std::int64_t> keep;
    const Copies which = copies_in(copies, keep);
    InArray in;
    const CollisionModel& x = collision_model_.view();
    if (x.model == ContactModel::none) throw Error("friction: this world has no contact");
    const Rows rows = rows_for(friction, "friction", which.count, x.surfaces, in);
    check_finite(rows.p, static_cast<std::int64_t>(in.size()), "friction");
    if (std::any_of(rows.p, rows.p + in.size(), [](double a) { return a < 0; }))
        throw Error("friction is negative; it must be 0 or more");
    collision_model_.write_friction(rows.p, rows.copy, which, n_);
    kernel_->set_friction(x.friction_root, x.friction_stride);
}

Copies World::copies_in(nb::handle h, std::vector<std::int64_t>& keep) const {
    if (h.is_none()) return {all_.data(), n_};
    nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu> a;
    if (!nb::try_cast(h, a, false) || a.ndim() != 1)
        throw Error("copies must be int64 indices of shape (k,), not " + described(h));
    keep.assign(a.data(), a.data() + a.size());
    for (const std::int64_t i : keep)
        if (i < 0 || i >= n_)
            throw Error("copies: there is no copy " + std::to_string(i) + " among " +
                        std::to_string(n_));
    return {keep.data(), static_cast<std::int64_t>(keep.size())};
}

Rows World::rows_for(nb::handle h, const char* name, std::int64_t count, int size,
                     InArray& keep) const {
    keep = array_in(h, name);
    const auto shape = shape_of(keep);
    const std::int64_t width = size;
    if (shape == std::vector<std::int64_t>{width}) return {keep.data(), 0, 0};
    if (shape == std::vector<std::int64_t>{count, width}) return {keep.data(), 0, width};
    throw Error(std::string(name) + " has shape " + shape_text(shape) + ", expected (" +
                std::to_string(size) + ",) or (" + std::to_string(count) + ", " +
                std::to_string(size) + ")");
}

OutArray World::time() const {
    check_idle();
    OutArray t = make_array({n_});
    std::copy(time_.begin(), time_.end(), t.data());
    return t;
}

Memory World::snapshot() const {
    check_idle();
    Memory m = {n_, kernel_->lane_count(), projectile_size_, impulse_size_, {}, {}, {}, {}, {}};
    if (push_until_ > kNever) m.pushes = memory_;
    if (projectile_size_) {
        m.projectiles.resize(n_ * projectile_size_);
        kernel_->read_projectiles(m.projectiles.data());
    }
    const std::int64_t kept = kernel_->count_kept();
    m.first.resize(kernel_->tiles() + 1);
    m.slot.resize(kept);
    m.impulse.resize(3 * kept * m.lanes);
    kernel_->read_kept({m.first.data(), m.slot.data(), m.impulse.data()});
    return m;
}

OutArray Memory::dense() const {
    const std::int64_t size = kMemory + projectile_size + impulse_size;
    OutArray out = make_zeros({n, size});
    for (std::int64_t i = 0; i < n; ++i) {
        double* to = out.data() + i * size;
        if (!pushes.empty()) std::copy_n(pushes.data() + i * kMemory, kMemory, to);
        if (!projectiles.empty())
            std::copy_n(projectiles.data() + i * projectile_size, projectile_size, to + kMemory);
        const std::int64_t tile = i / lanes, lane = i % lanes;
        to += kMemory + projectile_size;
        for (std::int64_t k = first[tile]; k < first[tile + 1]; ++k)
            for (int j = 0; j < 3; ++j) to[3 * slot[k] + j] = impulse[(3 * k + j) * lanes + lane];
    }
    return out;
}

ProjectileStates World::projectiles() const {
    check_idle();
    const std::int64_t count = projectile_size_ / kProjectile;
    std::vector<double> table(n_ * projectile_size_);
    kernel_->read_projectiles(table.data());
    auto thrown = make_bools({n_, count});
    OutArray q = make_array({n_, count, 7}), v = make_array({n_, count, 6});
    for (std::int64_t i = 0; i < n_ * count; ++i) {
        const double* from = table.data() + i * kProjectile;
        thrown.data()[i] = from[0] != 0;
        std::copy_n(from + 1, 7, q.data() + 7 * i);
        std::copy_n(from + 8, 6, v.data() + 6 * i);
    }
    return {nb::cast(thrown), nb::cast(q), nb::cast(v)};
}

int World::throw_projectile(nb::object q, nb::object v, nb::object which) {
    check_idle();
    InArray kq, kv;
    const Rows rq = rows_in(q, "q", 7, kq), rv = rows_in(v, "v", 6, kv);
    check_finite(rq.p, (rq.copy ? n_ : 1) * 7, "q");
    check_finite(rv.p, (rv.copy ? n_ : 1) * 6, "v");
    const auto mask = which.is_none() ? std::vector<std::uint8_t>(n_, 1) : mask_in(which);
    const std::int64_t count = projectile_size_ / kProjectile;
    std::vector<std::int64_t> chosen;
    for (std::int64_t i = 0; i < n_; ++i)
        if (mask[i]) chosen.push_back(i);
    std::vector<double> projectiles(n_ * projectile_size_), rows;
    kernel_->read_projectiles(projectiles.data());
    for (std::int64_t k = 0; k < count; ++k) {
        bool waits = true;
        for (std::int64_t i = 0; i < n_; ++i)
            if (mask[i] && projectiles[(i * count + k) * kProjectile] != 0) waits = false;
        if (!waits) continue;
        for (std::int64_t i = 0; i < n_; ++i) {
            if (!mask[i]) continue;
            double* to = projectiles.data() + (i * count + k) * kProjectile;
            to[0] = 1;
            std::copy_n(rq.p + i * rq.copy, 7, to + 1);
            std::copy_n(rv.p + i * rv.copy, 6, to + 8);
        }
        for (const std::int64_t i : chosen)
            rows.insert(rows.end(), projectiles.begin() + i * projectile_size_,
                        projectiles.begin() + (i + 1) * projectile_size_);
        kernel_->write_projectiles(rows.data(),
                                   {chosen.data(), static_cast<std::int64_t>(chosen.size())});
        return static_cast<int>(k);
    }
    return -1;
}

Contacts World::contacts() const {
    check_idle();
    const std::int64_t count = kernel_->count_contacts();
    std::vector<ContactRecord> rows(count);
    kernel_->read_contacts(rows.data());
    auto copy = make_ints(count), collider = make_ints(count), other = make_ints(count);
    OutArray point = make_array({count, 3}), normal = make_array({count, 3}),
             impulse = make_array({count, 3}), gap = make_array({count});
    for (std::int64_t i = 0; i < count; ++i) {
        const ContactRecord& r = rows[i];
        copy.data()[i] = r.copy;
        collider.data()[i] = r.collider;
        other.data()[i] = r.other;
        std::copy_n(r.at, 3, point.data() + 3 * i);
        std::copy_n(r.normal, 3, normal.data() + 3 * i);
        std::copy_n(r.impulse, 3, impulse.data() + 3 * i);
        gap.data()[i] = r.gap;
    }
    return {nb::cast(copy),   nb::cast(collider), nb::cast(other), nb::cast(point),
            nb::cast(normal), nb::cast(impulse),  nb::cast(gap)};
}

OutArray World::torque() {
    check_idle();
    OutArray tau = make_array({n_, model_.nv()});
    ReadCall call;
    call.torque = {tau.data(), false};
    run(call, n_ * model_.nv());
    return tau;
}

nb::ndarray<nb::numpy, bool> World::saturated() const {
    check_idle();
    auto out = make_bools({n_, model_.nv()});
    kernel_->read_limited(out.data());
    return out;
}

nb::tuple World::faults() const {
    check_idle();
    nb::list copies, joints, times, singular;
    for (std::int64_t i = 0; i < n_; ++i) {
        if (!frozen_[i]) continue;
        copies.append(i);
        const int body = fault_[i].body;
        joints.append((body < model_.nb_() ? model_ : whole_).joint_name(body));
        times.append(fault_[i].time);
        singular.append(fault_[i].singular);
    }
    return nb::make_tuple(copies, joints, times, singular);
}

OutArray World::fault_table() const {
    check_idle();
    OutArray out = make_array({n_, 3});
    for (std::int64_t i = 0; i < n_; ++i) {
        out.data()[3 * i] = frozen_[i] ? fault_[i].body : -1;
        out.data()[3 * i + 1] = fault_[i].singular;
        out.data()[3 * i + 2] = fault_[i].time;
    }
    return out;
}

void World::restore_faults(nb::object table) {
    check_idle();
    const InArray a = array_in(table, "faults");
    const double* p = shaped(a, "faults", {n_, 3});
    for (std::int64_t i = 0; i < n_; ++i)
        if (!(p[3 * i] >= -1 && p[3 * i] < whole_.nb_())) throw Error("faults: no such body");
    for (std::int64_t i = 0; i < n_; ++i, p += 3) {
        frozen_[i] = p[0] >= 0;
        fault_[i] = {static_cast<std::int32_t>(p[0]), p[1] != 0, p[2]};
    }
}

const bool* World::dof_mask(const MaskArray& mask, const char* name) const {
    if (mask.ndim() != 1 || static_cast<int>(mask.size()) != model_.nv())
        throw Error(std::string(name) + " must be a boolean array of shape " +
                    shape_text({model_.nv()}));
    return mask.data();
}

std::vector<std::uint8_t> World::mask_in(nb::handle h) const {
    nb::ndarray<const bool, nb::c_contig, nb::device::cpu> a;
    if (!try_array(h, a) || a.ndim() != 1 || static_cast<std::int64_t>(a.size()) != n_)
        throw Error("where must be a boolean array of shape " + shape_text({n_}));
    std::vector<std::uint8_t> mask(n_);
    for (std::int64_t i = 0; i < n_; ++i) mask[i] = a.data()[i];
    return mask;
}

void World::write(nb::object q, nb::object v, nb::object time, nb::object memory,
                  nb::object copies) {
    check_idle();
    const int nq = model_.nq(), nv = model_.nv();
    std::vector<std::int64_t> keep;
    const Copies which = copies_in(copies, keep);
    const std::int64_t count = which.count;
    InArray kq, kv;
    const Rows rq = rows_for(q, "state.q", count, nq, kq);
    const Rows rv = rows_for(v, "state.v", count, nv, kv);
    model_.check_q(rq.p, rq.copy ? count : 1, "state.q");
    check_finite(rv.p, (rv.copy ? count : 1) * nv, "state.v");
    check_size(rq.p, (rq.copy ? count : 1) * nq, "state.q");
    check_size(rv.p, (rv.copy ? count : 1) * nv, "state.v");
    const std::vector<double> t = copy_in(time, "state.time", {count});
    // a cold start has no pushes, no projectiles and no impulses
    const bool cold = memory.is_none();
    std::vector<double> m, projectiles, impulses;
    if (!cold) {
        const InArray in = array_in(memory, "state.memory");
        const double* from = shaped(in, "state.memory", {count, memory_size_});
        m.resize(count * kMemory);
        projectiles.resize(count * projectile_size_);
        impulses.resize(count * impulse_size_);
        for (std::int64_t i = 0; i < count; ++i, from += memory_size_) {
            std::copy_n(from, kMemory, m.data() + i * kMemory);
            std::copy_n(from + kMemory, projectile_size_,
                        projectiles.data() + i * projectile_size_);
            std::copy_n(from + kMemory + projectile_size_, impulse_size_,
                        impulses.data() + i * impulse_size_);
        }
    }
    check_finite(projectiles.data(), static_cast<std::int64_t>(projectiles.size()), "state.memory");
    check_finite(impulses.data(), static_cast<std::int64_t>(impulses.size()), "state.memory");
    for (std::int64_t i = 0; !cold && i < count * kPushes; ++i) {
        const double link = m[kPush * i];
        if (!(link >= 0 && link <= model_.nl() && link == std::floor(link)))
            throw Error("state.memory is not one of this world");
        check_finite(m.data() + kPush * i, link == 0 ? 0 : 2, "state.memory");
        if (link != 0 && std::isnan(m[kPush * i + 2]))
            throw Error("state.memory: a push ends at NaN");
        check_finite(m.data() + kPush * i + 3, link == 0 ? 0 : kPush - 3, "state.memory");
        if (m[kPush * i + 12] < 0 || m[kPush * i + 13] < 0)
            throw Error("state.memory: a spring is negative");
    }
    kernel_->write(rq.p, rv.p, rq.copy, rv.copy, which);
    kernel_->write_projectiles(cold ? nullptr : projectiles.data(), which);
    kernel_->write_impulses(cold ? nullptr : impulses.data(), which);
    const bool pushed = push_until_ > kNever;  // else all memory is 0
    for (std::int64_t row = 0; row < count; ++row) {
        const std::int64_t i = which.copy[row];
        time_[i] = t[row];
        if (!cold) std::copy_n(m.data() + row * kMemory, kMemory, memory_.data() + i * kMemory);
        else if (pushed) std::fill_n(memory_.data() + i * kMemory, kMemory, 0.0);
        frozen_[i] = 0;
        fault_[i] = {-1, false, 0};
    }
    if (pushed || !cold) find_pushes();
}

// until when any push runs
void World::find_pushes() {
    push_until_ = kNever;
    const Push* p = reinterpret_cast<const Push*>(memory_.data());
    for (std::int64_t i = 0; i < n_ * kPushes; ++i)
        if (p[i].link != 0) push_until_ = std::max(push_until_, p[i].end);
}

void World::push(int link, nb::object force, nb::object torque, nb::object point, double at,
                 double duration, nb::object which) {
    check_idle();
    if (link < 0 || link >= model_.nl()) throw Error("push: no such link");
    if (!(duration > 0)) throw Error("push: duration must be positive [s]");
    InArray kf, kt, kp;
    const Rows f = vectors_in(force, "push force", kf), t = vectors_in(torque, "push torque", kt);
    const Rows p = vectors_in(point, "push point", kp);
    const auto slot = slots_for(which, -1);
    for (std::int64_t i = 0; i < n_; ++i)
        if (slot[i] >= 0 && at < time_[i] - 0.5 * dt_)
            throw Error("push: at is " + std::to_string(at) + " s, and the clock of copy " +
                        std::to_string(i) + " is at " + std::to_string(time_[i]) +
                        " s already; at=None is now");
    for (std::int64_t i = 0; i < n_; ++i) {
        if (slot[i] < 0) continue;
        Push& o = pushes_of(i)[slot[i]];
        const double start = std::isnan(at) ? time_[i] : at;
        o = {};
        o.link = link + 1;
        o.start = start;
        o.end = start + duration;
        for (int k = 0; k < 3; ++k) {
            o.force[k] = f.p[i * f.copy + k];
            o.torque[k] = t.p[i * t.copy + k];
            o.point[k] = p.p[i * p.copy + k];
        }
        push_until_ = std::max(push_until_, o.end);
    }
}

// A slot for every copy, before any is filled: all or nothing. -1 where nothing is asked for. A
// link that is dragged keeps its slot.
std::vector<int> World::slots_for(nb::object which, int dragged) {
    const auto mask = which.is_none() ? std::vector<std::uint8_t>(n_, 1) : mask_in(which);
    std::vector<int> slot(n_, -1);
    for (std::int64_t i = 0; i < n_; ++i) {
        if (!mask[i]) continue;
        const Push* p = pushes_of(i);
        for (int k = kPushes - 1; k >= 0; --k)
            if (p[k].link == 0 || p[k].end <= time_[i]) slot[i] = k;
        for (int k = 0; k < kPushes && dragged >= 0; ++k)
            if (p[k].link == dragged + 1 && p[k].drags()) slot[i] = k;
        if (slot[i] < 0)
            throw Error("push: copy " + std::to_string(i) + " has " + std::to_string(kPushes) +
                        " pushes running or waiting, which is the most");
    }
    return slot;
}

void World::drag(int link, nb::object to, nb::object velocity, nb::object point, double stiffness,
                 double damping, nb::object which) {
    check_idle();
    if (link < 0 || link >= model_.nl()) throw Error("drag: no such link");
    for (const double x : {stiffness, damping})
        if (!(x >= 0) || !(x <= 1e15))
            throw Error("drag: stiffness and damping must be 0 or more, and at most 1e15");
    if (!(stiffness + damping > 0)) throw Error("drag: stiffness and damping are both 0");
    InArray kt, kv, kp;
    const Rows t = vectors_in(to, "drag to", kt), v = vectors_in(velocity, "drag velocity", kv);
    const Rows p = vectors_in(point, "drag point", kp);
    const auto slot = slots_for(which, link);
    for (std::int64_t i = 0; i < n_; ++i) {
        if (slot[i] < 0) continue;
        Push& o = pushes_of(i)[slot[i]];
        o = {};
        o.link = link + 1;
        o.start = time_[i];
        o.end = std::numeric_limits<double>::infinity();
        for (int k = 0; k < 3; ++k) {
            o.to[k] = t.p[i * t.copy + k];
            o.velocity[k] = v.p[i * v.copy + k];
            o.point[k] = p.p[i * p.copy + k];
        }
        o.stiffness = stiffness;
        o.damping = damping;
        push_until_ = o.end;
    }
}

void World::release(int link, nb::object which) {
    check_idle();
    const auto mask = which.is_none() ? std::vector<std::uint8_t>(n_, 1) : mask_in(which);
    for (std::int64_t i = 0; i < n_; ++i)
        for (int k = 0; k < kPushes && mask[i]; ++k) {
            Push& p = pushes_of(i)[k];
            if (link < 0 || p.link == link + 1) p = {};
        }
    find_pushes();
}

bool World::dragging() const {
    const Push* p = reinterpret_cast<const Push*>(memory_.data());
    return std::any_of(p, p + n_ * kPushes, [](const Push& x) { return x.link != 0 && x.drags(); });
}

Push* World::pushes_of(std::int64_t copy) {
    return reinterpret_cast<Push*>(memory_.data() + copy * kMemory);
}

Rows World::rows_of(const InArray& array, const char* name, int size, int rows) const {
    const std::size_t lead = rows ? 1 : 0, ndim = array.ndim();
    bool good = (ndim == lead + 1 || ndim == lead + 2) &&
                static_cast<std::int64_t>(array.shape(ndim - 1)) == size;
    good = good && (!rows || static_cast<std::int64_t>(array.shape(0)) == rows);
    const bool per_copy = good && ndim == lead + 2;
    if (per_copy) good = static_cast<std::int64_t>(array.shape(lead)) == n_;
    if (!good) {
        const std::string r = rows ? std::to_string(rows) + ", " : "", s = std::to_string(size);
        throw Error(std::string(name) + " has shape " + shape_text(shape_of(array)) +
                    ", expected (" + r + s + (rows ? ")" : ",)") + " or (" + r +
                    std::to_string(n_) + ", " + s + ")");
    }
    const std::int64_t copy = per_copy && n_ > 1 ? size : 0;
    return {array.data(), rows ? (per_copy ? n_ * size : size) : 0, copy};
}

Rows World::rows_in(nb::handle h, const char* name, int size, InArray& keep) const {
    keep = array_in(h, name);
    return rows_of(keep, name, size, 0);
}

Rows World::vectors_in(nb::handle h, const char* name, InArray& keep) const {
    const Rows rows = rows_in(h, name, 3, keep);
    check_finite(rows.p, rows.copy ? 3 * n_ : 3, name);
    return rows;
}

int World::place_of(const Gains& gains) {
    for (int i = 0; i < 8; ++i)
        if (gains_met_[i] == gains.id) return i;
    if (gains.nv == model_.nv() && gains.signature != model_.signature())
        throw Error("these gains were made for a character with other joints");
    if (gains.nv != model_.nv() || gains.nl != model_.nl())
        throw Error("these gains were made for " + std::to_string(gains.nv) +
                    " degrees of freedom, the world has " + std::to_string(model_.nv()));
    if (gains.copies != 1 && gains.copies != n_)
        throw Error("these gains hold " + std::to_string(gains.copies) + " rows, the world has " +
                    std::to_string(n_) + " copies");
    const int place = kernel_->add_gains(gains.table());
    gains_met_[place] = gains.id;
    return place;
}

void World::read_drive(const Drive& drive, int steps, StepCall& call) {
    const int nq = model_.nq(), nv = model_.nv(), nl = model_.nl(), rows = drive.rows;
    if (rows && rows != steps)
        throw Error("the target has " + std::to_string(rows) + " rows and steps is " +
                    std::to_string(steps) + "; one row is one step");
    const auto finite = [&](const InArray& array, const char* name, int size, int k) {
        if (!array.is_valid()) return Rows{};
        const Rows r = rows_of(array, name, size, k);
        check_finite(r.p, static_cast<std::int64_t>(array.size()), name);
        return r;
    };
    const auto weights = [&](const InArray& array, const char* name) {
        const Rows r = finite(array, name, nl, 0);
        for (std::size_t k = 0; r.p && k < array.size(); ++k)
            if (array.data()[k] < 0) throw Error(std::string(name) + " must be 0 or more");
        return r;
    };
    call.gains = place_of(drive.gains());
    call.target_q = rows_of(drive.q_, "target.q", nq, rows);
    model_.check_q(call.target_q.p, static_cast<std::int64_t>(drive.q_.size()) / nq, "target.q",
                   1e-6);
    call.target_v = finite(drive.v_, "target.v", nv, rows);
    call.target_a = finite(drive.a_, "target.a", nv, rows);
    call.strength = weights(drive.strength_, "strength");
    call.pin = weights(drive.pin_, "pin");
    if (call.pin.p && drive.method != 0) throw Error("pins need the method 'maba'");
    call.form = static_cast<Form>(drive.form_);
    if (drive.forms_.is_valid()) {
        if (static_cast<int>(drive.forms_.size()) != nv)
            throw Error("form must be a number, or one of each degree of freedom");
        call.forms = drive.forms_.data();
    }
    call.method = static_cast<Method>(drive.method);
    call.embedded = drive.embedded;
    call.feedforward = drive.feedforward_;
    if (drive.fed_.is_valid()) call.fed = dof_mask(drive.fed_, "feedforward");
}

int World::step(const Drive* drive, nb::object force, nb::object acceleration,
                nb::object acceleration_mask, int steps) {
    check_idle();
    if (steps < 1) throw Error("steps is " + std::to_string(steps) + "; it must be 1 or more");
    const int nv = model_.nv();
    StepCall call;
    if (drive) read_drive(*drive, steps, call);
    if (call.method != Method::maba && push_until_ > kNever && dragging())
        throw Error("a link is dragged: that needs the method 'maba'");
    InArray keep[2];
    const auto take = [&](nb::handle h, const char* name, InArray& hold) {
        const Rows r = rows_in(h, name, nv, hold);
        check_finite(r.p, static_cast<std::int64_t>(hold.size()), name);
        return r;
    };
    if (!force.is_none()) call.force = take(force, "force", keep[0]);
    if (!acceleration.is_none()) call.acceleration = take(acceleration, "acceleration", keep[1]);
    MaskArray mask;
    if (!acceleration_mask.is_none()) {
        if (!try_array(acceleration_mask, mask))
            throw Error("acceleration_mask must be a boolean array of shape " + shape_text({nv}));
        call.accelerated = dof_mask(mask, "acceleration_mask");
        model_.check_trees(call.accelerated, "acceleration_mask");
    }
    call.steps = steps;
    call.correct_momentum = correct_momentum_;
    if (push_until_ > kNever) {
        const double first = *std::min_element(time_.begin(), time_.end());
        if (first < push_until_) call.memory = memory_.data();
    }
    run(call);
    return static_cast<int>(std::count(frozen_.begin(), frozen_.end(), 1));
}

static double seconds_now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

nb::tuple World::profile() const {
    StepProfile sum;
    for (const StepProfile& p : profile_) {
        for (int k = 0; k < kPhases; ++k) sum.seconds[k] += p.seconds[k];
        for (int k = 0; k < kResidualBins; ++k) sum.residuals[k] += p.residuals[k];
        sum.steps += p.steps;
        sum.contacts += p.contacts;
        sum.solved += p.solved;
        sum.iterations += p.iterations;
        sum.islands += p.islands;
        sum.largest_residual = std::max(sum.largest_residual, p.largest_residual);
    }
    nb::list seconds, residuals;
    for (const double s : sum.seconds) seconds.append(s);
    for (const std::int64_t count : sum.residuals) residuals.append(count);
    return nb::make_tuple(seconds, sum.steps, sum.contacts, sum.solved, sum.iterations, sum.islands,
                          residuals, sum.largest_residual);
}

void World::run(StepCall& call) {
    call.dt = dt_;
    call.substeps = substeps_;
    std::copy(gravity_, gravity_ + 3, call.gravity);
    call.time = time_.data();
    call.frozen = frozen_.data();
    call.fault = fault_.data();
    kernel_->prepare(call.method);
    for (StepProfile& p : profile_) p.clock = seconds_now;
    call.profile = profile_.empty() ? nullptr : profile_.data();
    const Busy busy(busy_);
    nb::gil_scoped_release release;
    const Pool::Work work = [&](std::int64_t begin, std::int64_t end, int thread) {
        kernel_->step(call, begin, end, thread);
    };
    // Long calls go in pieces, of the same steps for all copies, so that Ctrl-C is heard. The first
    // is one step, the next ones as long as fits.
    using Clock = std::chrono::steady_clock;
    const std::int64_t steps = call.steps;
    const auto begin = steps > 1 ? Clock::now() : Clock::time_point();
    double heard = 0;
    std::int64_t done = 0, most = 1;
    for (;;) {
        call.steps = static_cast<int>(std::min(steps - done, most));
        pool_.run(kernel_->tiles(), work);
        done += call.steps;
        if (done == steps) return;
        for (Rows* rows : {&call.target_q, &call.target_v, &call.target_a})
            if (rows->p) rows->p += call.steps * rows->step;
        const double now = std::chrono::duration<double>(Clock::now() - begin).count();
        if (now - heard > kUnheard) {
            nb::gil_scoped_acquire acquire;
            if (PyErr_CheckSignals()) nb::raise_python_error();
            heard = now;
        }
        const double fit = static_cast<double>(done) * kUnheard / (now + 1e-9);
        most = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(fit, 1e9)), 1, 8 * done);
    }
}

OutArray World::torques(nb::object q, nb::object v, nb::object gains, nb::object target_q,
                        nb::object target_v, nb::object load, nb::object gravity, int form,
                        int method) {
    if (busy_) throw Error("another thread is using this servo; give each thread one of its own");
    set_gravity(gravity);
    if (impulse_size_ || projectile_size_) throw Error("torques are for worlds without contact");
    if (!nb::isinstance<Gains>(gains)) throw Error("gains must be Gains");
    if (form < 0 || form > 3 || method < 0 || method > 3) throw Error("no such form or method");
    const int nq = model_.nq(), nv = model_.nv();
    InArray keep[5];
    const auto take = [&](nb::handle h, const char* name, InArray& hold) {
        const Rows r = rows_in(h, name, nv, hold);
        check_finite(r.p, static_cast<std::int64_t>(hold.size()), name);
        return r;
    };
    const auto place = [&](nb::handle h, const char* name, InArray& hold) {
        const Rows r = rows_in(h, name, nq, hold);
        model_.check_q(r.p, static_cast<std::int64_t>(hold.size()) / nq, name);
        return r;
    };
    const Rows rq = place(q, "q", keep[0]), rv = take(v, "v", keep[1]);
    check_size(rq.p, static_cast<std::int64_t>(keep[0].size()), "q");
    check_size(rv.p, static_cast<std::int64_t>(keep[1].size()), "v");
    StepCall call;
    call.gains = place_of(nb::cast<const Gains&>(gains));
    call.target_q = place(target_q, "target.q", keep[2]);
    if (!target_v.is_none()) call.target_v = take(target_v, "target.v", keep[3]);
    if (!load.is_none()) call.load = take(load, "force", keep[4]);
    call.torques_only = true;
    call.correct_momentum = false;
    call.form = static_cast<Form>(form);
    call.method = static_cast<Method>(method);
    kernel_->write(rq.p, rv.p, rq.copy, rv.copy, {all_.data(), n_});
    std::fill(frozen_.begin(), frozen_.end(), 0);
    run(call);
    for (std::int64_t i = 0; i < n_; ++i) {
        if (!frozen_[i]) continue;
        const std::string where = "joint '" + whole_.joint_name(fault_[i].body) + "'" +
                                  (n_ > 1 ? " of state " + std::to_string(i) : std::string());
        throw Error(fault_[i].singular
                        ? "the mass matrix is singular at " + where +
                              ": axes in line, or nothing to move; give the joint some armature"
                        : where + " would reach a million rad/s: the state has diverged");
    }
    OutArray tau = keep[0].ndim() == 1 && n_ == 1 ? make_array({nv}) : make_array({n_, nv});
    ReadCall out;
    out.torque = {tau.data(), false};
    kernel_->read(out, 0, kernel_->tiles(), 0);
    return tau;
}

}  // namespace poise
