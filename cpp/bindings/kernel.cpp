// The kernels of one instruction set. This file is compiled once for each, with POISE_ISA set.
#include <limits>

#include "poise/balance/balance_solver.hpp"
#include "poise/contact/ray.hpp"
#include "poise/kernel.hpp"
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
          scratch_(threads), contact_(threads), momentum_(threads), visited_(tiles_) {
        for (std::int64_t t = 0; t < tiles_; ++t) visited_[t] = 0;
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
    int lane_count() const override { return lanes; }

    void read(const ReadCall& call, std::int64_t begin, std::int64_t end,
              int thread) const override {
        for (std::int64_t t = begin; t < end; ++t) {
            store_tile(t, call.q, q_.data() + t * f.nq, seen_.nq);
            store_tile(t, call.v, v_.data() + t * f.nv, seen_.nv);
            store_tile(t, call.torque, tau_.data() + t * f.nv, seen_.nv);
            if (call.moves()) read_links(t, call, *scratch_[thread]);
            if (call.touches()) read_touches(t, call);
        }
    }

    void read_limited(bool* out) const override {
        for (std::int64_t i = 0; i < n_; ++i)
            for (int k = 0; k < seen_.nv; ++k)
                *out++ =
                    limits_ && get(limited_[i / lanes * f.nv + k], static_cast<int>(i % lanes));
    }
    std::int64_t count_kept() const override {
        std::int64_t count = 0;
        for (std::int64_t t = 0; touches() && t < tiles_; ++t) count += kept_[t].count();
        return count;
    }
    void read_kept(const KeptImpulses& out) const override {
        std::int64_t i = 0;
        for (std::int64_t t = 0; t < tiles_; ++t) {
            out.first[t] = i;
            const S* from = impulses_.data() + t * 3 * touch_.slots;
            for (int k = 0; touches() && k < kept_[t].count(); ++k, ++i) {
                out.slot[i] = kept_[t][k];
                for (int j = 0; j < 3; ++j)
                    for (int lane = 0; lane < lanes; ++lane)
                        out.impulse[(3 * i + j) * lanes + lane] =
                            double(get(from[3 * kept_[t][k] + j], lane));
            }
        }
        out.first[tiles_] = i;
    }
    void write_impulses(const double* in, const Copies& copies) override {
        if (!touches()) return;
        const int size = 3 * touch_.slots;
        each_lane(copies, [&](std::int64_t t, int lane, std::int64_t row) {
            S* to = impulses_.data() + t * size;
            // what is not kept is 0
            for (int k = 0; k < kept_[t].count(); ++k)
                for (int j = 0; j < 3; ++j) put(to[3 * kept_[t][k] + j], lane, T(0));
            report_[t].forget(lane);
            if (in) write_lane(in + row * size, size, lane, to);
        });
        if (in) each_tile(copies, [&](std::int64_t t) { find_kept(t); });
    }
    void write_inertia(const double* mass, const double* mc, const double* Io,
                       const Copies& copies) override {
        if (!own_) {
            // every tile has the constants that all shared
            Buffer<Constants<S>> constants(tiles_ * f.nb);
            Buffer<Axis<S>> axis(tiles_ * f.nv);
            for (std::int64_t t = 0; t < tiles_; ++t) {
                for (int i = 0; i < f.nb; ++i) constants[t * f.nb + i] = constants_[i];
                for (int k = 0; k < f.nv; ++k) axis[t * f.nv + k] = axis_[k];
            }
            constants_.swap(constants);
            axis_.swap(axis);
            own_ = true;
        }
        each_lane(copies, [&](std::int64_t t, int lane, std::int64_t row) {
            for (int i = 0; i < f.nb; ++i) {
                const std::int64_t from = row * f.nb + i;
                Constants<S>& o = constants_[t * f.nb + i];
                load_inertia(mass[from], mc + 3 * from, Io + 6 * from, o.stick, lane, o);
            }
        });
    }
    void set_friction(const double* friction_root, std::int64_t stride) override {
        touch_.friction_root = friction_root;
        touch_.friction_stride = stride;
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
    bool any_projectile() const override {
        for (std::int64_t i = 0; i < tiles_ * touch_.projectiles.count; ++i)
            if (any(out_[i])) return true;
        return false;
    }
    void write_projectiles(const double* in, const Copies& copies) override {
        const int count = touch_.projectiles.count;
        if (!count) return;
        each_lane(copies, [&](std::int64_t t, int lane, std::int64_t row) {
            for (int k = 0; k < count; ++k) {
                const double* from = in ? in + (row * count + k) * kProjectile : nullptr;
                const bool out = from && from[0] != 0;
                put(out_[t * count + k], lane, out);
                // those that wait are high up and apart
                const double waiting[13] = {100.0 * k, 0, 1e4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
                const double* s = out ? from + 1 : waiting;
                write_lane(s, 7, lane, q_.data() + t * f.nq + seen_.nq + 7 * k);
                write_lane(s + 7, 6, lane, v_.data() + t * f.nv + seen_.nv + 6 * k);
            }
            unit_lane(f, lane, q_.data() + t * f.nq);
        });
        each_tile(copies, [&](std::int64_t t) { find_rotation_steps(t); });
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
               const Copies& copies) override {
        each_lane(copies, [&](std::int64_t t, int lane, std::int64_t row) {
            S* tq = q_.data() + t * f.nq;
            write_lane(q + row * q_stride, seen_.nq, lane, tq);
            unit_lane(seen_, lane, tq);
            write_lane(v + row * v_stride, seen_.nv, lane, v_.data() + t * f.nv);
            for (int k = 0; k < seen_.nv; ++k) {
                put(tau_[t * f.nv + k], lane, T(0));
                if (limits_) put(limited_[t * f.nv + k], lane, false);
            }
        });
        each_tile(copies, [&](std::int64_t t) { find_rotation_steps(t); });
    }

    void cast_rays(const RayCall& call, std::int64_t begin, std::int64_t end,
                   int thread) const override {
        Buffer<RaySolid> solid(touch_.colliders + 1);
        Scratch<S>& s = *scratch_[thread];
        for (std::int64_t t = begin; t < end; ++t) {
            if (call.links) {
                move<S>(f, constants_.data() + (own_ ? t * f.nb : 0), q_.data() + t * f.nq,
                        v_.data() + t * f.nv, nullptr, zero3<S>(), s.work.data());
                place(f, s.work.data(), s.origin.data());
            }
            for (int lane = 0; lane < lanes && t * lanes + lane < n_; ++lane)
                cast_rays_of(call, t, lane, solid.data(), s);
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
            near.ground.height += t * lanes * touch_.ground.height_stride;
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
            tile.profile = call.profile ? call.profile + thread : nullptr;
            tile.first = t * lanes;
            tile.count = n_ - t * lanes < lanes ? n_ - t * lanes : lanes;
            step_tile(whole, call, tile, *scratch_[thread]);
        }
    }

  private:
    using T = Element<S>;
    static constexpr std::int64_t lanes = Traits<S>::lanes;
    static constexpr int kGains = 8;

    // A collider that rays meet: where it is in one copy.
    struct RaySolid {
        std::int32_t index;
        double p[3];
        Mat3<double> R;
    };

    template <class To>
    void store_tile_as(std::int64_t t, To* to, const S* from, int size) const {
        const std::int64_t first = t * lanes, count = n_ - first < lanes ? n_ - first : lanes;
        for (int lane = 0; lane < count; ++lane) {
            To* row = to + (first + lane) * size;
            for (int i = 0; i < size; ++i) row[i] = static_cast<To>(get(from[i], lane));
        }
    }
    void store_tile(std::int64_t t, const OutRows& out, const S* from, int size) const {
        if (!out.p) return;
        if (out.single_precision) store_tile_as(t, static_cast<float*>(out.p), from, size);
        else store_tile_as(t, static_cast<double*>(out.p), from, size);
    }
    // `width` numbers in some columns of rows of `row`
    template <class To>
    void store_columns(std::int64_t t, To* to, const S* from, int width, std::int64_t row) const {
        const std::int64_t first = t * lanes, count = n_ - first < lanes ? n_ - first : lanes;
        to += first * row;
        for (int lane = 0; lane < count; ++lane, to += row)
            for (int k = 0; k < width; ++k) to[k] = static_cast<To>(get(from[k], lane));
    }
    // numbers of one link, `width` each
    void store_link(std::int64_t t, const OutRows& out, const S* from, int column, int width,
                    std::int64_t links) const {
        const std::int64_t at = static_cast<std::int64_t>(width) * column, row = width * links;
        if (out.single_precision)
            store_columns(t, static_cast<float*>(out.p) + at, from, width, row);
        else store_columns(t, static_cast<double*>(out.p) + at, from, width, row);
    }
    void read_links(std::int64_t t, const ReadCall& call, Scratch<S>& s) const {
        const S* v = v_.data() + t * f.nv;
        // parents come before children: bodies behind the last of these links do not matter
        Forest part = seen_;
        part.nb = 0;
        for (int k = 0; k < call.links; ++k) {
            const int body = seen_.link_body[call.link[k]];
            if (body >= part.nb) part.nb = body + 1;
        }
        move<S>(part, constants_.data() + (own_ ? t * f.nb : 0), q_.data() + t * f.nq, v, nullptr,
                zero3<S>(), s.work.data());
        place(part, s.work.data(), s.origin.data());
        velocities(part, v, s.work.data(), s.velocity.data());
        for (int column = 0; column < call.links; ++column) {
            const int l = call.link[column];
            Vec3<S> p, linear = zero3<S>(), angular = zero3<S>();
            Quat<S> Q;
            link_pose(seen_, l, s.work.data(), s.origin.data(), p, Q);
            const int b = seen_.link_body[l];
            if (b >= 0) {
                angular = s.work[b].motion.w;
                linear = s.velocity[b] + cross(angular, p - s.origin[b]);
            }
            S x[4];
            const auto give = [&](const OutRows& out, const auto& value, int width) {
                if (!out.p) return;
                store(x, value);
                store_link(t, out, x, column, width, call.links);
            };
            give(call.link_position, p, 3);
            give(call.link_quat, Q, 4);
            give(call.link_velocity, linear, 3);
            give(call.link_angular_velocity, angular, 3);
        }
    }

    static void clear_rows(const OutRows& out, std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; out.p && i < to; ++i)
            if (out.single_precision) static_cast<float*>(out.p)[i] = 0;
            else static_cast<double*>(out.p)[i] = 0;
    }
    static void add_force(const OutRows& out, std::int64_t at, const double* x) {
        for (int k = 0; out.p && k < 3; ++k)
            if (out.single_precision)
                static_cast<float*>(out.p)[at + k] += static_cast<float>(x[k]);
            else static_cast<double*>(out.p)[at + k] += x[k];
    }
    // as the user knows them: a link, -1 the ground, -2 - k the obstacle k
    int known_as(std::int32_t collider) const {
        if (collider < 0) return -1;
        const int link = touch_.collider[collider].link;
        return link < 0 ? link - 1 : link;
    }
    void read_touches(std::int64_t t, const ReadCall& call) const {
        const std::int64_t first = t * lanes, last = first + lanes < n_ ? first + lanes : n_;
        const std::int64_t nl = call.links, pairs = call.pair_columns;
        for (std::int64_t i = first * nl; call.link_contact && i < last * nl; ++i)
            call.link_contact[i] = false;
        for (std::int64_t i = first * pairs; call.pair_contact && i < last * pairs; ++i)
            call.pair_contact[i] = false;
        clear_rows(call.link_contact_force, 3 * first * nl, 3 * last * nl);
        clear_rows(call.pair_contact_force, 3 * first * pairs, 3 * last * pairs);
        for (int k = 0; touches() && k < report_[t].count(); ++k) {
            const auto& r = report_[t][k];
            const int one = known_as(r.collider), two = known_as(r.other);
            // a pair of links is known by the lower one
            const bool turned = two >= 0 && two < one;
            const LinkPair key = {turned ? two : one, turned ? one : two, 0, 0};
            const LinkPair* from = call.pair;
            const LinkPair* const stop = call.pair + call.pair_entries;
            const auto before = [](const LinkPair& a, const LinkPair& b) {
                return a.link != b.link ? a.link < b.link : a.other < b.other;
            };
            while (from < stop && before(*from, key)) ++from;
            // both sides of the contact; projectiles come after the links of the scene
            const auto column_of = [&](int link) {
                const bool asked = call.link_contact || call.link_contact_force.p;
                return !asked || link < 0 || link >= seen_.nl ? -1 : call.link_column[link];
            };
            const int column[2] = {column_of(one), column_of(two)};
            if (column[0] < 0 && column[1] < 0 && (from == stop || before(key, *from))) continue;
            const bool forces = call.link_contact_force.p || call.pair_contact_force.p;
            const double per = 1 / call.dt;
            double force[2][3] = {};  // on the one and on the other
            for (std::int64_t copy = first; copy < last; ++copy) {
                const int lane = static_cast<int>(copy - first);
                if (!get(r.on, lane)) continue;
                if (forces) {
                    force[0][0] = per * double(get(r.impulse.x, lane));
                    force[0][1] = per * double(get(r.impulse.y, lane));
                    force[0][2] = per * double(get(r.impulse.z, lane));
                    for (int j = 0; j < 3; ++j) force[1][j] = -force[0][j];
                }
                for (int side = 0; side < 2; ++side) {
                    if (column[side] < 0) continue;
                    const std::int64_t at = copy * nl + column[side];
                    if (call.link_contact) call.link_contact[at] = true;
                    add_force(call.link_contact_force, 3 * at, force[side]);
                }
                for (const LinkPair* p = from; p < stop && !before(key, *p); ++p) {
                    const std::int64_t at = copy * pairs + p->column;
                    if (call.pair_contact) call.pair_contact[at] = true;
                    add_force(call.pair_contact_force, 3 * at, force[(p->sign < 0) != turned]);
                }
            }
        }
    }

    // every lane of these copies: visit(tile, lane, row). Lanes beyond the last copy repeat it.
    template <class Visit>
    void each_lane(const Copies& copies, Visit visit) const {
        for (std::int64_t row = 0; row < copies.count; ++row) {
            const std::int64_t copy = copies.copy[row], t = copy / lanes;
            const std::int64_t end = copy == n_ - 1 ? lanes : copy % lanes + 1;
            for (std::int64_t lane = copy % lanes; lane < end; ++lane)
                visit(t, static_cast<int>(lane), row);
        }
    }
    // every tile that has some of these copies, once
    template <class Visit>
    void each_tile(const Copies& copies, Visit visit) {
        for (std::int64_t row = 0; row < copies.count; ++row) {
            const std::int64_t t = copies.copy[row] / lanes;
            if (visited_[t]) continue;
            visited_[t] = 1;
            visit(t);
        }
        for (std::int64_t row = 0; row < copies.count; ++row)
            visited_[copies.copy[row] / lanes] = 0;
    }
    void find_rotation_steps(std::int64_t t) {
        update_rotation_steps(f, T(dt_), v_.data() + t * f.nv, rotation_step_.data() + t * f.nb,
                              *scratch_[0]);
    }

    // ---- rays

    // the projectile that a collider belongs to, or -1
    int projectile_of(int collider) const {
        const Projectiles& x = touch_.projectiles;
        for (int k = 0; k < x.count; ++k)
            if (collider >= x.colliders[k] && collider < x.colliders[k + 1]) return k;
        return -1;
    }
    // colliders that rays meet in one copy
    int solids_of(const RayCall& call, std::int64_t t, int lane, RaySolid* solid,
                  const Scratch<S>& s) const {
        int count = 0;
        for (int k = 0; k < touch_.colliders; ++k) {
            const Collider& o = touch_.collider[k];
            if (o.link >= 0 && (!call.links || call.skipped[o.link])) continue;
            const int projectile = projectile_of(k);
            if (projectile >= 0 && !get(out_[t * touch_.projectiles.count + projectile], lane))
                continue;
            RaySolid& a = solid[count++];
            a.index = k;
            a.R = matrix(Quat<double>{o.E[0], o.E[1], o.E[2], o.E[3]});
            for (int j = 0; j < 3; ++j) a.p[j] = o.p[j];
            if (o.body < 0) continue;
            const Mat3<S>& B = s.work[o.body].R;
            const Vec3<S>& at = s.origin[o.body];
            const auto x = [&](const S& value) { return double(get(value, lane)); };
            const Mat3<double> L = {x(B.xx), x(B.xy), x(B.xz), x(B.yx), x(B.yy),
                                    x(B.yz), x(B.zx), x(B.zy), x(B.zz)};
            const Vec3<double> p = L * Vec3<double>{o.p[0], o.p[1], o.p[2]};
            a.p[0] = x(at.x) + p.x, a.p[1] = x(at.y) + p.y, a.p[2] = x(at.z) + p.z;
            a.R = L * a.R;
        }
        return count;
    }
    void meet_solid(const RaySolid& a, const Ray& ray, RayHit& hit) const {
        const Collider& o = touch_.collider[a.index];
        const Vec3<double> d = tmul(a.R, Vec3<double>{ray.d[0], ray.d[1], ray.d[2]});
        const Vec3<double> p =
            tmul(a.R, Vec3<double>{ray.o[0] - a.p[0], ray.o[1] - a.p[1], ray.o[2] - a.p[2]});
        const Ray own = {{p.x, p.y, p.z}, {d.x, d.y, d.z}};
        RayHit now = {hit.t, {0, 0, 0}};
        switch (o.kind) {
            case Solid::sphere: meet_ball(own, o.size[0], now); break;
            case Solid::capsule: meet_capsule(own, o.size[0], o.size[1], now); break;
            case Solid::box: meet_box(own, o.size, now); break;
            case Solid::cylinder: meet_cylinder(own, o.size[0], o.size[1], now); break;
            case Solid::mesh: meet_mesh(own, o.hull->plane, o.hull->faces, now); break;
        }
        if (!(now.t < hit.t)) return;
        const Vec3<double> n = a.R * Vec3<double>{now.n[0], now.n[1], now.n[2]};
        hit = {now.t, {n.x, n.y, n.z}};
    }
    void cast_rays_of(const RayCall& call, std::int64_t t, int lane, RaySolid* solid,
                      const Scratch<S>& s) const {
        const std::int64_t copy = t * lanes + lane;
        const int count = solids_of(call, t, lane, solid, s);
        Ground ground = touch_.ground;
        const std::int64_t field = ground.height_stride ? copy : 0;
        ground.height += field * ground.height_stride;
        for (std::int64_t k = 0; k < call.k; ++k) {
            const double* o = call.origin + copy * call.origin_stride + 3 * k;
            const double* d = call.direction + copy * call.direction_stride + 3 * k;
            const double size = std::sqrt(dot3(d, d));
            const Ray ray = {{o[0], o[1], o[2]}, {d[0] / size, d[1] / size, d[2] / size}};
            RayHit hit = {kNoHit, {0, 0, 0}};
            std::int64_t what = call.nothing;
            if (call.ground && ground.kind == GroundKind::plane) meet_plane(ray, ground, hit);
            if (call.ground && ground.kind == GroundKind::field)
                meet_field(ray, ground, ground.lowest[field], ground.highest[field], hit);
            if (hit.t < kNoHit) what = -1;
            for (int i = 0; i < count; ++i) {
                // the ball that holds the shape first
                const RaySolid& a = solid[i];
                const double r = touch_.collider[a.index].reach * (1 + 1e-9);
                const double to[3] = {ray.o[0] - a.p[0], ray.o[1] - a.p[1], ray.o[2] - a.p[2]};
                const double b = dot3(to, ray.d), far2 = dot3(to, to);
                if (far2 - b * b > r * r || (b > 0 && far2 > r * r) || -b - r > hit.t) continue;
                const double before = hit.t;
                meet_solid(a, ray, hit);
                if (hit.t < before) what = known_as(a.index);
            }
            if (hit.t > call.farthest) {
                hit = {kNoHit, {0, 0, 0}};
                what = call.nothing;
            }
            const std::int64_t at = copy * call.k + k;
            call.distance[at] = hit.t;
            call.link[at] = what;
            for (int j = 0; j < 3; ++j) call.normal[3 * at + j] = hit.n[j];
        }
    }

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
            // a ball at its limit resists some turns and not others
            const bool split =
                f.body[i].kind == Kind::ball && (x.effort_stride || effort[f.body[i].v] < 1e300);
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
    Buffer<std::uint8_t> visited_;  // (tiles) by each_tile
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
    void collide(const Collider& a, const Collider& b, const double* pose, std::int64_t n,
                 double near, double* nearest, double* touches) const override {
        const auto placed = [](const Collider& o, const double* q) {
            return Posed{o.kind,
                         o.size,
                         {q[0], q[1], q[2]},
                         matrix(Quat<double>{q[3], q[4], q[5], q[6]}),
                         o.hull,
                         o.reach,
                         o.box};
        };
        const auto write = [](const Touch& t, double* to) {
            const double row[7] = {t.gap, t.n.x, t.n.y, t.n.z, t.at.x, t.at.y, t.at.z};
            for (int k = 0; k < 7; ++k) to[k] = row[k];
        };
        const Touch none = {{0, 0, 0}, {0, 0, 0}, std::numeric_limits<double>::infinity()};
        for (std::int64_t i = 0; i < n; ++i) {
            const Posed one = placed(a, pose + 14 * i), two = placed(b, pose + 14 * i + 7);
            Touch touch[kMostTouches];
            Nearest found;
            int count = 0;
            write(none, nearest + 7 * i);
            if (nearest_points(one, two, near, found)) {
                write({two.p + found.at, found.n, found.gap}, nearest + 7 * i);
                count = touch_patch(one, two, found, near, touch);
            }
            for (int k = 0; k < 4; ++k)
                write(k < count ? touch[k] : none, touches + 28 * i + 7 * k);
        }
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

// double, float; a batch of each
const Kernel* kernel_at(int index) {
#if !defined(POISE_SCALAR)
    static const KernelOf<Pack<double, kBytes / 8>> many_double{};
    static const KernelOf<Pack<float, kBytes / 4>> many_float{};
    if (index == 2) return &many_double;
    if (index == 3) return &many_float;
#endif
#if defined(__AVX512F__) && !defined(POISE_SCALAR)
    return nullptr;  // one character runs the AVX2 kernels (dispatch.cpp): a tenth of the module
#else
    static const KernelOf<double> one_double{};
    static const KernelOf<float> one_float{};
    if (index % 2 == 0) return &one_double;
    return &one_float;
#endif
}

}  // namespace POISE_ISA

#define POISE_JOIN2(a, b) a##b
#define POISE_JOIN(a, b) POISE_JOIN2(a, b)
const Kernel* POISE_JOIN(kernels_, POISE_ISA)(int index) { return kernel_at(index); }

}  // namespace poise
