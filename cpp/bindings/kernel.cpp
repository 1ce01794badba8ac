// The kernels of one instruction set. This file is compiled once for each, with POISE_ISA set.
#include "poise/kernel.hpp"
#include "poise/balance/balance_solver.hpp"
#include "poise/queries.hpp"
#include "poise/step.hpp"

namespace poise {
inline namespace POISE_ISA {

// Gains laid out for the lanes.
template <class S>
struct GainSet {
    Buffer<Gain<S>> gain;    // (tiles or 1, nv)
    Buffer<double> pin;      // (nl, 4)
    Buffer<bool> isotropic;  // (nb)
    bool own = false;        // one row per copy
};

template <class S>
class WorldOf final : public WorldKernel {
  public:
    WorldOf(const Forest& forest, const ModelParameters& x, const CollisionModel& collision_model,
            std::int64_t n, double dt, int threads)
        : f(forest), touch_(collision_model), n_(n), tiles_((n + lanes - 1) / lanes), dt_(dt),
          threads_(threads),
          own_(x.mass_stride || x.mc_stride || x.Io_stride || x.armature_stride || x.effort_stride),
          constants_((own_ ? tiles_ : 1) * f.nb), axis_((own_ ? tiles_ : 1) * f.nv),
          one_axis_(f.nb), q_(tiles_ * f.nq), v_(tiles_ * f.nv), tau_(tiles_ * f.nv),
          rotation_step_(tiles_ * f.nb), out_(tiles_ * collision_model.projectiles.count + 1),
          scratch_(threads), contact_(threads), momentum_(threads) {
        seen_ = f;
        if (touch_.projectiles.count) {
            seen_.nb = touch_.projectiles.nb;
            seen_.nq = touch_.projectiles.nq;
            seen_.nv = touch_.projectiles.nv;
            seen_.nl = f.nl - static_cast<int>(touch_.projectiles.count);  // each is one link
        }
        for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = constant_mask<S>(false);
        for (std::int64_t t = 0; t < (own_ ? tiles_ : 1); ++t)
            load_constants(f, x, t * lanes, own_ ? n : 1, constants_.data() + t * f.nb,
                           axis_.data() + t * f.nv);
        for (std::int64_t copy = 0; copy < (own_ ? n : 1); ++copy) look_at_axes(x, copy);
        for (std::int64_t i = 0; i < tiles_ * f.nv; ++i) tau_[i] = v_[i] = S(T(0));
        limited_.resize(limits_ ? tiles_ * f.nv : 1);
        for (std::size_t i = 0; i < limited_.size(); ++i) limited_[i] = constant_mask<S>(false);
        for (int i = 0; i < threads; ++i) {
            scratch_[i] = new Scratch<S>(f);
            contact_[i] = touches() ? new ContactScratch<S>(f, touch_) : nullptr;
            momentum_[i] = flies(f) ? new MomentumCorrection<S>(f.nb) : nullptr;
        }
        if (!touches()) return;
        impulses_.resize(tiles_ * 3 * touch_.slots);
        for (std::size_t i = 0; i < impulses_.size(); ++i) impulses_[i] = S(T(0));
        report_ = new Report<S>[tiles_];
        kept_ = new Kept[tiles_];
    }
    ~WorldOf() override {
        for (int i = 0; i < threads_; ++i) {
            delete scratch_[i];
            delete contact_[i];
            delete momentum_[i];
        }
        delete[] report_;
        delete[] kept_;
        for (GainSet<S>* g : gains_) delete g;
    }

    std::int64_t tiles() const override { return tiles_; }

    void read(double* q, double* v) const override {
        for (std::int64_t t = 0; t < tiles_; ++t) {
            store_rows(q_.data() + t * f.nq, seen_.nq, t * lanes, n_ - t * lanes, q);
            store_rows(v_.data() + t * f.nv, seen_.nv, t * lanes, n_ - t * lanes, v);
        }
    }
    void read_torque(double* tau) const override {
        for (std::int64_t t = 0; t < tiles_; ++t)
            store_rows(tau_.data() + t * f.nv, seen_.nv, t * lanes, n_ - t * lanes, tau);
    }

    void read_limited(bool* out) const override {
        for (std::int64_t i = 0; i < n_; ++i)
            for (int k = 0; k < seen_.nv; ++k)
                *out++ =
                    limits_ && get(limited_[i / lanes * f.nv + k], static_cast<int>(i % lanes));
    }
    void read_impulses(double* out) const override {
        const int size = 3 * touch_.slots;
        for (std::int64_t t = 0; touches() && t < tiles_; ++t)
            store_rows(impulses_.data() + t * size, size, t * lanes, n_ - t * lanes, out);
    }
    void write_impulses(const double* in, const std::uint8_t* which) override {
        const int size = 3 * touch_.slots;
        for (std::int64_t i = 0; touches() && i < tiles_ * lanes; ++i) {
            const std::int64_t copy = i < n_ ? i : n_ - 1;
            if (!which[copy]) continue;
            const int lane = static_cast<int>(i % lanes);
            S* to = impulses_.data() + i / lanes * size;
            if (in) write_lane(in + copy * size, size, lane, to);
            else
                for (int k = 0; k < size; ++k) put(to[k], lane, T(0));
        }
        for (std::int64_t t = 0; touches() && t < tiles_; ++t) find_kept(t);
        for (std::int64_t i = 0; touches() && i < n_; ++i)
            if (which[i]) report_[i / lanes].forget(static_cast<int>(i % lanes));
    }

    void read_projectiles(double* out) const override {
        const int count = touch_.projectiles.count;
        for (std::int64_t i = 0; i < n_ * count; ++i) {
            const std::int64_t copy = i / count, t = copy / lanes;
            const int k = static_cast<int>(i % count), lane = static_cast<int>(copy % lanes);
            double* to = out + i * kProjectile;
            *to++ = get(out_[t * count + k], lane) ? 1 : 0;
            for (int j = 0; j < 7; ++j)
                *to++ = double(get(q_[t * f.nq + seen_.nq + 7 * k + j], lane));
            for (int j = 0; j < 6; ++j)
                *to++ = double(get(v_[t * f.nv + seen_.nv + 6 * k + j], lane));
        }
    }
    void write_projectiles(const double* in, const std::uint8_t* which) override {
        const int count = touch_.projectiles.count;
        if (!count) return;
        for (std::int64_t i = 0; i < tiles_ * lanes; ++i) {
            const std::int64_t copy = i < n_ ? i : n_ - 1, t = i / lanes;
            const int lane = static_cast<int>(i % lanes);
            if (!which[copy]) continue;
            for (int k = 0; k < count; ++k) {
                const double* from = in + (copy * count + k) * kProjectile;
                const bool out = from[0] != 0;
                put(out_[t * count + k], lane, out);
                // those that wait are high up and apart
                const double waiting[13] = {100.0 * k, 0, 1e4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
                const double* s = out ? from + 1 : waiting;
                write_lane(s, 7, lane, q_.data() + t * f.nq + seen_.nq + 7 * k);
                write_lane(s + 7, 6, lane, v_.data() + t * f.nv + seen_.nv + 6 * k);
            }
            unit_lane(f, lane, q_.data() + t * f.nq);
        }
        for (std::int64_t t = 0; t < tiles_; ++t)
            update_rotation_steps(f, T(dt_), v_.data() + t * f.nv, rotation_step_.data() + t * f.nb,
                                  *scratch_[0]);
    }

    std::int64_t count_contacts() const override {
        std::int64_t count = 0;
        each_contact([&](std::int64_t, const typename Report<S>::Row&, int) { ++count; });
        return count;
    }
    void read_contacts(ContactRecord* out) const override {
        each_contact([&](std::int64_t copy, const typename Report<S>::Row& r, int lane) {
            const auto put3 = [&](const Vec3<S>& from, double* to) {
                to[0] = double(get(from.x, lane));
                to[1] = double(get(from.y, lane));
                to[2] = double(get(from.z, lane));
            };
            out->copy = copy;
            out->collider = r.collider;
            out->other = r.other;
            put3(r.at, out->at);
            put3(r.n, out->normal);
            put3(r.impulse, out->impulse);
            out->gap = double(get(r.gap, lane));
            ++out;
        });
    }

    void write(const double* q, const double* v, std::int64_t q_stride, std::int64_t v_stride,
               const std::uint8_t* which) override {
        for (std::int64_t t = 0; t < tiles_; ++t) {
            S* tq = q_.data() + t * f.nq;
            S* tv = v_.data() + t * f.nv;
            bool touched = false;
            for (int lane = 0; lane < lanes; ++lane) {
                // lanes beyond the last copy repeat it
                const std::int64_t copy = t * lanes + lane < n_ ? t * lanes + lane : n_ - 1;
                if (which && !which[copy]) continue;
                touched = true;
                write_lane(q + copy * q_stride, seen_.nq, lane, tq);
                unit_lane(seen_, lane, tq);
                write_lane(v + copy * v_stride, seen_.nv, lane, tv);
                for (int k = 0; k < seen_.nv; ++k) {
                    put(tau_[t * f.nv + k], lane, T(0));
                    if (limits_) put(limited_[t * f.nv + k], lane, false);
                }
            }
            if (touched)
                update_rotation_steps(f, T(dt_), tv, rotation_step_.data() + t * f.nb,
                                      *scratch_[0]);
        }
    }

    int add_gains(const GainTable& table) override {
        const int place = next_;
        next_ = (next_ + 1) % kGains;
        delete gains_[place];
        GainSet<S>* g = gains_[place] = new GainSet<S>;
        g->own = table.stride != 0;
        const std::int64_t count = g->own ? tiles_ : 1;
        const int nv = seen_.nv;
        g->gain.resize(count * nv);
        g->pin.resize(4 * seen_.nl);
        g->isotropic.resize(f.nb);
        for (int i = 0; i < 4 * seen_.nl; ++i) g->pin[i] = table.pin[i];
        // gains per copy go the general way, so that neighbours do not matter
        for (int i = 0; i < f.nb; ++i) g->isotropic[i] = one_axis_[i] && !g->own;
        for (std::int64_t t = 0; t < count; ++t) {
            for (int lane = 0; lane < lanes; ++lane) {
                const std::int64_t copy = t * lanes + lane < n_ ? t * lanes + lane : n_ - 1;
                const double* kp = table.kp + copy * table.stride;
                const double* kd = table.kd + copy * table.stride;
                for (int k = 0; k < nv; ++k) {
                    put(g->gain[t * nv + k].kp, lane, T(kp[k]));
                    put(g->gain[t * nv + k].kd, lane, T(kd[k]));
                }
                for (int i = 0; i < seen_.nb; ++i)
                    if (!same(kp, i) || !same(kd, i)) g->isotropic[i] = false;
            }
        }
        return place;
    }

    void prepare(Method method) override {
        if (method == Method::maba) return;
        for (int i = 0; i < threads_; ++i) scratch_[i]->need_matrix(f);
    }

    void step(const StepCall& call, std::int64_t begin, std::int64_t end, int thread) override {
        const GainSet<S>* g = call.gains >= 0 ? gains_[call.gains] : nullptr;
        for (std::int64_t t = begin; t < end; ++t) {
            Tile<S> tile;
            tile.constants = constants_.data() + (own_ ? t * f.nb : 0);
            tile.axis = axis_.data() + (own_ ? t * f.nv : 0);
            tile.gain = g ? g->gain.data() + (g->own ? t * seen_.nv : 0) : nullptr;
            tile.pin_table = g ? g->pin.data() : nullptr;
            tile.isotropic = g ? g->isotropic.data() : one_axis_.data();
            tile.q = q_.data() + t * f.nq;
            tile.v = v_.data() + t * f.nv;
            tile.rotation_step = rotation_step_.data() + t * f.nb;
            tile.tau = tau_.data() + t * f.nv;
            tile.limited = limits_ ? limited_.data() + t * f.nv : nullptr;
            tile.passive = passive_ || call.load.p;
            tile.limits = limits_;
            tile.seen = seen_;
            const int out = thrown_projectiles(t);
            Forest whole = seen_;
            whole.nb += out;
            whole.nq += 7 * out;
            whole.nv += 6 * out;
            CollisionModel near = touch_;
            if (touch_.projectiles.count) {
                near.colliders = touch_.projectiles.colliders[out];
                near.probes = touch_.projectiles.probes[out];
                near.pairs = touch_.projectiles.pairs[out];
            }
            tile.out = out_.data() + t * touch_.projectiles.count;
            tile.touch = touches() ? &near : nullptr;
            tile.contact = contact_[thread];
            tile.momentum = momentum_[thread];
            tile.impulses = touches() ? impulses_.data() + t * 3 * touch_.slots : nullptr;
            tile.kept = kept_ ? kept_ + t : nullptr;
            tile.report = report_ ? report_ + t : nullptr;
            tile.first = t * lanes;
            tile.count = n_ - t * lanes < lanes ? n_ - t * lanes : lanes;
            step_tile(whole, call, tile, *scratch_[thread]);
        }
    }

  private:
    using T = Element<S>;
    static constexpr std::int64_t lanes = Traits<S>::lanes;
    static constexpr int kGains = 8;

    // projectiles up to the last that is out in any copy of a tile
    int thrown_projectiles(std::int64_t t) const {
        int count = touch_.projectiles.count;
        while (count && !any(out_[t * touch_.projectiles.count + count - 1])) --count;
        return count;
    }
    void find_kept(std::int64_t t) {
        kept_[t].clear();
        const S zero(T(0));
        const S* p = impulses_.data() + t * 3 * touch_.slots;
        const auto some = [&](const S& x) { return (x < zero) | (zero < x); };
        for (int k = 0; k < touch_.slots; ++k, p += 3)
            if (any(some(p[0]) | some(p[1]) | some(p[2]))) kept_[t].add(k);
    }
    bool touches() const { return touch_.model != ContactModel::none; }
    template <class Visit>
    void each_contact(Visit visit) const {
        for (std::int64_t t = 0; touches() && t < tiles_; ++t)
            for (int lane = 0; lane < lanes && t * lanes + lane < n_; ++lane)
                for (int k = 0; k < report_[t].count(); ++k)
                    if (get(report_[t][k].on, lane)) visit(t * lanes + lane, report_[t][k], lane);
    }
    bool same(const double* x, int i) const {
        const Body& b = f.body[i];
        return b.kind != Kind::ball || (x[b.v] == x[b.v + 1] && x[b.v] == x[b.v + 2]);
    }
    // which features the joints' own parameters call for
    void look_at_axes(const ModelParameters& x, std::int64_t copy) {
        const double* armature = x.armature + copy * x.armature_stride;
        const double* effort = x.effort + copy * x.effort_stride;
        for (int k = 0; k < f.nv; ++k) {
            if (armature[k] != 0 || x.damping[k] != 0 || x.stiffness[k] != 0) passive_ = true;
            if (effort[k] < 1e300) limits_ = true;
        }
        for (int i = 0; i < f.nb; ++i) {
            const bool split =
                f.effort_per_axis[i] && (x.effort_stride || effort[f.body[i].v] < 1e300);
            const bool one = same(armature, i) && same(x.damping, i) && same(x.stiffness, i);
            one_axis_[i] = (copy == 0 || one_axis_[i]) && one && !split && !x.armature_stride;
        }
    }
    static void write_lane(const double* from, int size, int lane, S* to) {
        for (int i = 0; i < size; ++i) put(to[i], lane, T(from[i]));
    }
    // in double, so that a float world starts from the nearest unit quaternion
    static void unit_lane(const Forest& forest, int lane, S* q) {
        for (int i = 0; i < forest.nb; ++i) {
            const Body& b = forest.body[i];
            if (b.kind == Kind::hinge || b.kind == Kind::slide) continue;
            S* p = q + b.q + (b.kind == Kind::free ? 3 : 0);
            double sum = 0;
            for (int j = 0; j < 4; ++j) sum += double(get(p[j], lane)) * double(get(p[j], lane));
            // leave what a step may have produced: a state read and written back stays the same
            if (std::fabs(sum - 1) <= (sizeof(T) == 8 ? 1e-12 : 1e-5)) continue;
            const double k = 1 / std::sqrt(sum);
            for (int j = 0; j < 4; ++j) put(p[j], lane, T(k * double(get(p[j], lane))));
        }
    }

    Forest f, seen_;  // with the projectiles; what the user sees
    CollisionModel touch_;
    std::int64_t n_, tiles_;
    double dt_;
    int threads_;
    bool own_, passive_ = false, limits_ = false;
    Buffer<Constants<S>> constants_;
    Buffer<Axis<S>> axis_;
    Buffer<bool> one_axis_;
    Buffer<S> q_, v_, tau_;
    Buffer<Quat<S>> rotation_step_;
    Buffer<MaskOf<S>> out_;      // (tiles, projectiles)
    Buffer<MaskOf<S>> limited_;  // (tiles, nv), if there are effort limits
    Buffer<Scratch<S>*> scratch_;
    Buffer<ContactScratch<S>*> contact_;
    Buffer<MomentumCorrection<S>*> momentum_;
    Buffer<S> impulses_;
    Report<S>* report_ = nullptr;
    Kept* kept_ = nullptr;
    GainSet<S>* gains_[kGains] = {};
    int next_ = 0;
};

// The evaluator of a thread, for the model of its last query; those of models with more degrees of
// freedom are not kept.
constexpr int kLargest = 256;
template <class S>
struct KeptEvaluator {
    QueryEvaluator<S>* evaluator = nullptr;
    ~KeptEvaluator() { delete evaluator; }
};

template <class S>
class KernelOf final : public Kernel {
  public:
    int lanes() const override { return Traits<S>::lanes; }
    WorldKernel* make_world(const Forest& forest, const ModelParameters& parameters,
                            const CollisionModel& collision_model, std::int64_t n, double dt,
                            int threads) const override {
        return new WorldOf<S>(forest, parameters, collision_model, n, dt, threads);
    }
    void evaluate(const Forest& forest, const ModelParameters& parameters, const Query& query,
                  std::int64_t begin, std::int64_t end) const override {
        if (forest.nv > kLargest)
            return QueryEvaluator<S>(forest).run(parameters, query, begin, end);
        static thread_local KeptEvaluator<S> kept;
        if (!kept.evaluator || kept.evaluator->id() != forest.id) {
            delete kept.evaluator;
            kept.evaluator = nullptr;
            kept.evaluator = new QueryEvaluator<S>(forest);
        }
        kept.evaluator->run(parameters, query, begin, end);
    }
    void balance(const BalanceProblem& problem, std::int64_t begin,
                 std::int64_t end) const override {
        solve_balance(problem, begin, end);
    }
    double multiply_adds(std::int64_t count) const override {
        using T = Element<S>;
        // ten sums by name: an array would live in memory. None starts at 1, where it would rest
        // and be left out.
        S a(T(2)), b(T(3)), c(T(4)), d(T(5)), e(T(6)), f(T(7)), g(T(8)), h(T(9)), i(T(10)),
            j(T(11));
        const S x(T(0.999)), y(T(0.001));
        for (std::int64_t k = 0; k < count; ++k) {
            a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y;
            f = f * x + y, g = g * x + y, h = h * x + y, i = i * x + y, j = j * x + y;
        }
        return double(get(a + b + c + d + e + f + g + h + i + j, 0));
    }
};

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

const Kernel* kernel_at(int index) {
    static const KernelOf<double> one_double{};
    static const KernelOf<float> one_float{};
    static const KernelOf<Pack<double, kBytes / 8>> many_double{};
    static const KernelOf<Pack<float, kBytes / 4>> many_float{};
    const Kernel* table[] = {&one_double, &one_float, &many_double, &many_float};
    return table[index];
}

}  // namespace POISE_ISA

#define POISE_JOIN2(a, b) a##b
#define POISE_JOIN(a, b) POISE_JOIN2(a, b)
const Kernel* POISE_JOIN(kernels_, POISE_ISA)(int index) { return kernel_at(index); }

}  // namespace poise
