package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/shed"
)

const (
	// handOver is what the hand-over of an overrun may take after the deadline:
	// the one exception to it.
	handOver = time.Second
	// reasonAsked and the refusals' reasons are what a 202 gives as its reason.
	reasonAsked = shed.Reason("asked")
)

// queue answers a request whose mode is queued.
func (p *Proxy) queue(w http.ResponseWriter, r *http.Request, s *served) {
	v := s.verdict
	reason := shed.OverBudget
	if v.mode.why == whyAsked {
		reason = reasonAsked
	}
	kept := keepBody(r.Body, v.route.jobs.MaxBody)
	defer kept.free()
	// Reading the body is part of what the caller waits for. Recorders and the
	// like have no deadline to set.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(v.Deadline)
	_, err := io.Copy(io.Discard, kept)
	_ = control.SetReadDeadline(time.Time{})
	switch {
	case kept.tooLarge():
		v.refuseAs(http.StatusRequestEntityTooLarge, shed.BadRequest, 0, "")
		v.with(shed.Limit{Name: "jobs.max_body", Value: float64(v.route.jobs.MaxBody), Unit: "byte", Yours: float64(max(0, r.ContentLength))})
	case err != nil && r.Context().Err() != nil:
		v.gone(r.Context())
	case err != nil:
		v.refuseAs(http.StatusRequestTimeout, shed.BadRequest, 0, "the body did not come in time")
	default:
		ctx, cancel := context.WithTimeout(r.Context(), storeTime)
		defer cancel()
		p.submit(ctx, w, r, s, kept, reason)
		return
	}
	p.refuse(w, r, v, v.Refusal)
}

// handOver makes a job of a request that overran, and reports whether it
// answered. The upstream has been told to stop: whoever ended the exchange
// passed nothing on and never will.
func (p *Proxy) handOver(w http.ResponseWriter, r *http.Request, s *served, kept *keeper) bool {
	v := s.verdict
	if !v.modeIn.possible || r.Context().Err() != nil {
		return false // a caller that has gone gets no job
	}
	if kept != nil {
		if _, _, whole := kept.body(); !whole {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), handOver)
	defer cancel()
	return p.submit(ctx, w, r, s, kept, shed.Deadline)
}

// submit keeps a job and answers 202, or answers with why it was not kept. Of
// an overrun for which the store took too long it does not answer.
func (p *Proxy) submit(ctx context.Context, w http.ResponseWriter, r *http.Request, s *served, kept *keeper, reason shed.Reason) bool {
	q, v := p.jobs, s.verdict
	overran := reason == shed.Deadline
	if limit, never := v.neverFits(); never {
		v.refuse(shed.NeverFits, 0, "").with(limit)
		p.refuse(w, r, v, v.Refusal)
		return true
	}
	sub := q.submission(r, s, reason)
	var job *jobs.Job
	err := q.tokenLasts(ctx, r.Header, sub.Job)
	if err == nil {
		err = q.once(sub, func() (err error) {
			if err = q.keep(ctx, r, s, sub, kept); err == nil {
				job, err = q.engine.Submit(ctx, *sub)
			}
			return err
		})
	}
	switch {
	case err == nil && job.ID != sub.Job.ID, jobs.Refused(err): // it had been submitted before, or is not kept
		q.forget(sub.Job.Body)
	case err == nil && r.Context().Err() != nil: // nobody got the handle
		q.abandon(job.ID)
	}
	if err == nil {
		s.queued = reason
		q.engine.Count(v.route.name, true)
		p.accepted(w, r, s, job, reason)
		return true
	}
	var full *jobs.FullError
	switch {
	case errors.As(err, &full):
		v.queueFull(full)
	case jobs.StoreFull(err):
		v.refuse(shed.StoreFull, constantWait, "")
	case errors.Is(err, jobs.ErrMismatch):
		v.refuseAs(http.StatusUnprocessableEntity, shed.BadRequest, 0, "this Idempotency-Key was used for another request")
	case errors.Is(err, errDeciding):
		v.refuseAs(http.StatusConflict, shed.BadRequest, 1, "a request with this Idempotency-Key is being decided on")
	case errors.Is(err, errTokenEnds):
		v.refuse(shed.BadRequest, 0, "the token expires before the job would have run: get a fresh one")
	case r.Context().Err() != nil:
		v.gone(r.Context())
	case overran && ctx.Err() != nil:
		return false
	default:
		v.refuse(shed.Store, constantWait, "")
	}
	p.refuse(w, r, v, v.Refusal)
	return true
}

var (
	errDeciding  = errors.New("the same idempotency key is being submitted")
	errTokenEnds = errors.New("the token expires too soon")
)

// once lets one submission of an idempotency key through at a time.
func (q *jobQueue) once(sub *jobs.Submission, f func() error) error {
	if sub.IdemKey == "" {
		return f()
	}
	q.mu.Lock()
	if q.deciding[sub.IdemKey] {
		q.mu.Unlock()
		return errDeciding
	}
	q.deciding[sub.IdemKey] = true
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.deciding, sub.IdemKey)
		q.mu.Unlock()
	}()
	return f()
}

// tokenLasts fails where the request's token expires before the job is expected
// to have been sent.
func (q *jobQueue) tokenLasts(ctx context.Context, h http.Header, j *jobs.Job) error {
	ends := tokenEnds(h)
	if ends.IsZero() {
		return nil
	}
	load, err := q.store.Load(ctx, j.Queue, j.Tenant)
	if err != nil {
		return err
	}
	if time.Until(ends) < load.Projected(j.Estimate) {
		return errTokenEnds
	}
	return nil
}

// submission describes the job of a request.
func (q *jobQueue) submission(r *http.Request, s *served, reason shed.Reason) *jobs.Submission {
	v := s.verdict
	j, est := &v.route.jobs, &v.Estimate
	estimate := time.Duration(est.Seconds * float64(time.Second))
	who := caller{Header: s.ask.Header, Query: s.ask.Query, Peer: s.ask.Peer, TLS: s.ask.TLS}
	tenant := v.Tenant.ID
	if v.Tenant.countsAddress() {
		tenant = v.Tenant.Address
	}
	info := jobs.Info{Family: est.Family, Op: opLabel(est.Op), Class: est.Class.String(), Low: est.Low, Why: v.ModeReason(), Reason: string(reason), Method: r.Method}
	info.Seconds, info.Basis = v.route.disclose.of(est)
	if reason != reasonAsked {
		info.Inline = v.class.inline
	}
	sub := &jobs.Submission{
		Limits: j.limits(),
		Job: &jobs.Job{
			ID: jobs.NewID(), Queue: v.route.name, Tenant: tenant, Owner: q.owner(v.config, &who, &v.Tenant),
			MaxAttempts: j.Attempts, Estimate: estimate, Timeout: j.Timeout, Keep: j.Keep, Info: info,
		},
	}
	if key := idempotencyKey(r.Header); key != "" {
		shown := append([]string{v.Tenant.ID}, v.config.tenants.credentials(&who)...)
		sub.IdemKey = q.marks.Of("idempotency", append(shown, key)...)
	}
	return sub
}

// keep seals the request and stores its body, before the job that refers to it.
func (q *jobQueue) keep(ctx context.Context, r *http.Request, s *served, sub *jobs.Submission, kept *keeper) error {
	request := keepRequest(r, s.verdict, s.verdict.config.tenants.isTrusted(s.ask.Peer))
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %q %q %q", request.Method, request.Host, request.Path, request.Query, first(request.Header["Content-Type"])) // never fails
	if kept != nil {
		body, size, _ := kept.body()
		if size > 0 {
			request.HasBody, request.Length = true, size
			sub.Job.Body = bodyBlob(sub.Job.ID)
			if err := q.keepBody(ctx, sub.Job.Body, io.TeeReader(body, sum)); err != nil {
				return err
			}
		}
	}
	sub.IdemSum = hex.EncodeToString(sum.Sum(nil))
	if sub.IdemKey == "" {
		sub.IdemSum = ""
	}
	text, err := json.Marshal(&request)
	if err != nil {
		return err
	}
	sub.Job.Request = q.sealer.Seal(string(sub.Job.ID), text)
	return nil
}

func (q *jobQueue) keepBody(ctx context.Context, name string, body io.Reader) error {
	blob, err := q.store.Create(ctx, name)
	if err != nil {
		return err
	}
	defer blob.Abort()
	sealed, err := q.sealer.Writer(blob, name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(sealed, body); err != nil {
		return err
	}
	if err := sealed.Close(); err != nil {
		return err
	}
	return blob.Commit()
}

func (q *jobQueue) forget(blob string) {
	if blob == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	_ = q.store.DeleteBlob(ctx, blob) // a sweep finds it otherwise
}

func (q *jobQueue) abandon(id jobs.ID) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	_, _ = q.engine.Cancel(ctx, id) // at worst it runs for nobody
}

// idempotencyKey reads Idempotency-Key, with the quotes that its draft asks for
// or without.
func idempotencyKey(h http.Header) string {
	raw := strings.TrimSpace(first(h["Idempotency-Key"]))
	if item, err := httpsfv.UnmarshalItem([]string{raw}); err == nil {
		if text, ok := item.Value.(string); ok {
			raw = text
		}
	}
	if len(raw) > 256 {
		sum := sha256.Sum256([]byte(raw))
		raw = hex.EncodeToString(sum[:])
	}
	return raw
}

// accepted answers 202 with the job's document.
func (p *Proxy) accepted(w http.ResponseWriter, r *http.Request, s *served, job *jobs.Job, reason shed.Reason) {
	v := s.verdict
	base := v.config.config.Public.URL + jobsBase(v.route.config.Match.Path)
	d := job.Describe(base)
	h := w.Header()
	v.stamp(h, 0)
	h[headerReason] = []string{string(reason)}
	h["Location"] = []string{base + "/" + string(job.ID)}
	h["Cache-Control"] = []string{"no-store"}
	h["Content-Type"] = []string{jobType(r.Header)}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Vary"] = []string{"Prefer"}
	if d.RetryAfter > 0 {
		h[headerRetryAfter] = []string{strconv.Itoa(d.RetryAfter)}
	}
	if v.steer.async {
		h["Preference-Applied"] = []string{"respond-async"}
	}
	if origin := first(r.Header["Origin"]); origin != "" {
		v.route.cors.apply(origin, h)
	}
	body := d.JSON()
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(body) // a caller that has gone cannot be told
}

// queueFull refuses a request that its queue does not take.
func (v *Verdict) queueFull(full *jobs.FullError) {
	reason, limit := shed.QueueDepth, shed.Limit{Name: "jobs.max_depth", Value: float64(full.Limits.Depth), Unit: "job", Yours: float64(full.Load.Depth + 1)}
	if full.ByWait {
		reason = shed.QueueWait
		limit = shed.Limit{Name: "jobs.max_wait", Value: full.Limits.Wait.Seconds(), Unit: "s", Yours: full.Projected.Seconds()}
	}
	projected := max(1, int(math.Ceil(full.Projected.Seconds())))
	wait := projected
	if wait > wholeSecondsUp(longestRetry) {
		wait = 0 // it takes longer than a caller should be told to wait
	}
	status := reason.Status()
	if full.Share {
		status = http.StatusTooManyRequests
	}
	v.refuseAs(status, reason, wait, "")
	v.Refusal.Projected = projected
	v.with(limit)
}

// jobsBase is the path of a route's jobs.
func jobsBase(prefix string) string { return strings.TrimSuffix(prefix, "/") + ownPrefix + "jobs" }

// neverFits finds the rate limit that the request can never keep to, as a job
// neither.
func (v *Verdict) neverFits() (shed.Limit, bool) {
	draws, from := v.draws(nil, nil, enforced)
	for i, d := range draws {
		if d.Cost > d.Limit.Burst {
			v.decided = from[i]
			return v.limitOf(d), true
		}
	}
	return shed.Limit{}, false
}
