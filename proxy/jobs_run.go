package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/shed"
)

// keptAnswer is the upstream's answer as it is kept beside the result: sealed.
type keptAnswer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"` // the beginning, of one that is no result
}

var errJobTimeout = errors.New("the attempt took longer than jobs.timeout")

// jobRun is one attempt at a job.
type jobRun struct {
	queue   *jobQueue
	job     *jobs.Job
	verdict Verdict
	telling telling
	writer  resultWriter
}

// release gives back what the upstream's work holds.
func (a *jobRun) release() { a.verdict.Release() }

// answered looks at the answer. Nothing of ours goes into a result: it is what
// the inline path would have passed on.
func (a *jobRun) answered(res *http.Response) { a.telling.watch(&a.verdict.Estimate.Call, res) }

// execute runs a job once, through the same forwarding code as an inline
// request: it waits for tokens and for seats of the gate's batch share, under
// its route's current config, and keeps the answer.
func (q *jobQueue) execute(ctx context.Context, job *jobs.Job) jobs.Ending {
	a := &jobRun{queue: q, job: job}
	request, err := q.open(job)
	if err != nil {
		return failure(jobs.ReasonUpstream, "the request cannot be opened: jobs.key has changed")
	}
	r := request.request()
	if job.Body != "" {
		blob, err := q.store.OpenBlob(ctx, job.Body)
		if err != nil {
			return again(job, shed.Store, "the request's body cannot be read", 0)
		}
		defer blob.Close() //nolint:errcheck // it was only read
		body, err := q.sealer.Reader(blob, job.Body)
		if err != nil {
			return failure(jobs.ReasonUpstream, "the request's body cannot be opened")
		}
		r.Body = io.NopCloser(body)
	}
	admission := q.proxy.admission
	ask := &Ask{
		Request: classify.Request{Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header},
		Peer:    peerOf(r), TLS: r.TLS, Arrived: time.Now(), tenant: &request.Tenant,
	}
	ask.Body.Length = r.ContentLength
	if job.Body != "" {
		ask.ReadBody = func(limit int64, within time.Duration) classify.Body {
			prefix, body := readPrefix(r.Body, r.ContentLength, limit, within)
			r.Body = prefix
			return body
		}
	}
	v := &a.verdict
	v.Mode, v.config = ModeInline, admission.state.Load()
	admission.assess(v.config, v, ask)
	if v.route == nil || v.route.name != job.Queue {
		return failure(jobs.ReasonNoRoute, "its route is gone")
	}
	if v.Refusal != nil && v.Refusal.Reason != shed.OverBudget {
		return failure(string(v.Refusal.Reason), "its route does not take this request any more")
	}
	v.Refusal, v.Mode = nil, ModeQueued
	v.mode.batch = true
	if ending, ok := admission.admitJob(ctx, v, job); !ok {
		return ending
	}
	defer v.Release()
	return a.forward(ctx, r, &request)
}

// admitJob takes tokens and seats for an attempt. It waits in the gate's line,
// which keeps its turn; it does not hold a seat for more than a second while it
// waits for tokens. Where those take longer, the job goes back to the queue
// until they are due, and the attempt does not count: nothing was sent.
func (a *Admission) admitJob(ctx context.Context, v *Verdict, job *jobs.Job) (jobs.Ending, bool) {
	later := func(d time.Duration) (jobs.Ending, bool) {
		return jobs.Ending{State: jobs.Accepted, Refund: true, Delay: min(max(d, 100*time.Millisecond), time.Minute)}, false
	}
	if gate := v.route.gate; gate != nil {
		slot, err := gate.Enter(ctx, v.want(), time.Now().Add(job.Keep))
		if err != nil {
			return later(time.Second) // the line is full, or the attempt is over
		}
		v.slot = slot
	}
	draws, refused := a.reserve(ctx, v, time.Now().Add(time.Second))
	if !refused {
		if ctx.Err() == nil {
			return jobs.Ending{}, true
		}
		a.buckets.Refund(draws)
	}
	v.Release()
	if v.grant.Never {
		return failure(string(shed.NeverFits), "it costs more than its rate limit ever holds"), false
	}
	return later(v.grant.Wait)
}

// forward sends the request and keeps the answer.
func (a *jobRun) forward(ctx context.Context, r *http.Request, request *keptRequest) (ending jobs.Ending) {
	q, v := a.queue, &a.verdict
	a.writer = resultWriter{run: a, ctx: ctx, limit: min(v.route.jobs.MaxResult, q.store.MaxBlob()-1<<20), name: fmt.Sprintf("%s.%d", a.job.ID, a.job.Fence)}
	defer a.writer.abort()
	ctx, cancel := context.WithTimeoutCause(ctx, a.job.Timeout, errJobTimeout)
	defer cancel()
	x := &exchange{
		owner: a, maxBody: v.route.config.MaxBody, stream: &v.config.stream, streams: &q.proxy.streams, trusted: request.Trusted,
	}
	func() {
		defer func() {
			// How forward says that an answer broke off; the exchange says why.
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // the very value
				panic(p) //nolint:forbidigo // it is the engine's to report
			}
		}()
		a.send(r.WithContext(ctx), x)
	}()
	a.telling.close(&v.Estimate.Call)
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errJobTimeout) {
			return failure(jobs.ReasonTimeout, "it took longer than "+a.job.Timeout.String())
		}
		return again(a.job, "", "", 0) // lost, or the process stops: the engine knows
	}
	return a.became(x)
}

// send forwards the request. An upstream that goes on when it is cancelled is
// read to its end, at most for as long as an attempt may take, so that the seat
// is held for as long as it works; a process that stops does not wait for that.
func (a *jobRun) send(r *http.Request, x *exchange) {
	u := a.verdict.route.upstream
	if u.cancels() {
		u.forward(&a.writer, r, x)
		return
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	unwatch := context.AfterFunc(r.Context(), func() {
		cause := context.Cause(r.Context())
		if errors.Is(cause, jobs.ErrStopping) {
			cause = errDraining
		}
		cancel(cause)
	})
	defer unwatch()
	stays, detached, end := stayOn(&a.writer, r.WithContext(ctx), time.Now().Add(a.job.Timeout))
	defer end()
	u.forward(stays, detached, x)
}

// became says how the attempt ended.
func (a *jobRun) became(x *exchange) jobs.Ending {
	w := &a.writer
	switch {
	case w.tooLarge:
		return failure(jobs.ReasonTooLarge, "the result is larger than "+strconv.FormatInt(w.limit, 10)+" bytes")
	case w.err != nil:
		return again(a.job, shed.Store, "the result could not be stored", 0)
	case x.fault == faultBody:
		return failure(string(shed.BadRequest), "the request's body is larger than max_body")
	case x.fault != faultNone || !x.sent:
		return again(a.job, shed.Upstream, "the service behind this address could not be reached, or broke off", 0)
	}
	retryAfter := retryAfterOf(w.kept)
	switch {
	case w.status >= http.StatusBadRequest:
		e := failure(jobs.ReasonUpstream, "the upstream answered "+strconv.Itoa(w.status))
		if jobs.Transient(w.status, retryAfter > 0) {
			e = again(a.job, shed.Upstream, "the upstream answered "+strconv.Itoa(w.status), retryAfter)
		}
		e.Answer = a.seal(keptAnswer{Status: w.status, Header: http.Header{"Content-Type": w.kept["Content-Type"]}, Body: w.excerpt()})
		return e
	case a.telling.answer == classify.AnswerFault:
		e := failure(jobs.ReasonUpstream, "the upstream answered "+strconv.Itoa(w.status)+" with an error inside")
		e.Answer = a.seal(keptAnswer{Status: w.status, Header: http.Header{"Content-Type": w.kept["Content-Type"]}, Body: w.excerpt()})
		return e
	}
	if err := w.commit(); err != nil {
		return again(a.job, shed.Store, "the result could not be stored", 0)
	}
	a.verdict.route.series.compare(a.verdict.Estimate.Op, a.verdict.Estimate.Seconds, x.waited)
	return jobs.Ending{
		State: jobs.Successful, Result: w.name, Size: w.size,
		Answer: a.seal(keptAnswer{Status: w.status, Header: w.kept}),
	}
}

func (a *jobRun) seal(answer keptAnswer) []byte {
	text, err := json.Marshal(&answer)
	if err != nil {
		return nil // only text
	}
	return a.queue.sealer.Seal(string(a.job.ID), text)
}

func (q *jobQueue) open(job *jobs.Job) (keptRequest, error) {
	var request keptRequest
	text, err := q.sealer.Open(string(job.ID), job.Request)
	if err != nil {
		return request, err
	}
	return request, json.Unmarshal(text, &request)
}

func failure(reason, why string) jobs.Ending {
	return jobs.Ending{State: jobs.Failed, Reason: reason, Error: why}
}

// again asks for another attempt, which the store grants while there is one left.
func again(job *jobs.Job, reason shed.Reason, why string, retryAfter time.Duration) jobs.Ending {
	return jobs.Ending{State: jobs.Accepted, Delay: jobs.Backoff(job.Attempt, retryAfter), Reason: string(reason), Error: why}
}

// retryAfterOf reads Retry-After; 0 where there is none.
func retryAfterOf(h http.Header) time.Duration {
	text := strings.TrimSpace(first(h["Retry-After"]))
	if d := wholeSeconds(text); d > 0 || text == "0" {
		return max(d, time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), time.Second)
	}
	return 0
}

// resultWriter is where forward writes an answer to: a sealed blob for what may
// be a result, memory for the beginning of anything.
type resultWriter struct {
	run   *jobRun
	ctx   context.Context //nolint:containedctx // of the attempt that writes
	name  string
	limit int64

	header   http.Header
	kept     http.Header
	status   int
	head     []byte
	blob     jobs.BlobWriter
	sealed   io.WriteCloser
	size     int64
	tooLarge bool
	err      error
}

// excerptSize is how much of an answer that is no result is kept.
const excerptSize = 512

// Header implements [http.ResponseWriter].
func (w *resultWriter) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader keeps the header as it is then. Informational ones are for
// whoever waits.
func (w *resultWriter) WriteHeader(status int) {
	if status < 200 || w.status != 0 {
		return
	}
	w.status, w.kept = status, w.Header().Clone()
	for _, name := range []string{"Set-Cookie", "Connection", "Trailer"} {
		delete(w.kept, name)
	}
	if status >= http.StatusBadRequest {
		return
	}
	if w.blob, w.err = w.run.queue.store.Create(w.ctx, w.name); w.err == nil {
		w.sealed, w.err = w.run.queue.sealer.Writer(w.blob, w.name)
	}
}

// Write implements [http.ResponseWriter].
func (w *resultWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if n := min(len(p), excerptSize-len(w.head)); n > 0 {
		w.head = append(w.head, p[:n]...)
	}
	if w.sealed == nil {
		return len(p), w.err
	}
	if w.size+int64(len(p)) > w.limit {
		w.tooLarge = true
		return 0, errBody
	}
	n, err := w.sealed.Write(p)
	w.size += int64(n)
	w.err = errors.Join(w.err, err)
	return n, err
}

func (w *resultWriter) excerpt() string { return strings.ToValidUTF8(string(w.head), "?") }

func (w *resultWriter) commit() error {
	if w.sealed == nil {
		w.WriteHeader(http.StatusOK)
	}
	if w.err != nil {
		return w.err
	}
	if err := w.sealed.Close(); err != nil {
		return err
	}
	return w.blob.Commit()
}

func (w *resultWriter) abort() {
	if w.blob != nil {
		w.blob.Abort()
	}
}
