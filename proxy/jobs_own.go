package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

const (
	// longestWait bounds ?wait.
	longestWait = 60 * time.Second
	// most waits and event streams of one caller at once, and least time
	// between two readings of one job: beyond it the last known status is given.
	mostWaiting = 50
	leastApart  = 500 * time.Millisecond
	mostAsked   = 4096
	listDefault = 20
	listMost    = 100
	// streamPing keeps an event stream's connection in use.
	streamPing = 15 * time.Second
)

// Problem types of OGC API - Processes.
const (
	typeNoSuchJob = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0/no-such-job"
	typeNotReady  = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0/result-not-ready"
	typeJobGone   = "https://github.com/geoproxy/geoproxy/blob/main/docs/problems.md#result-expired"
	typeJobFailed = "https://github.com/geoproxy/geoproxy/blob/main/docs/problems.md#job-failed"
	typeJobsList  = "https://github.com/geoproxy/geoproxy/blob/main/docs/problems.md#bad-request"
	typeJobsStore = "https://github.com/geoproxy/geoproxy/blob/main/docs/problems.md#store"
)

// lastAnswer is what was last told of a job.
type lastAnswer struct {
	at  time.Time
	job *jobs.Job
}

// jobRequest is a request for one of the resources of jobs.
type jobRequest struct {
	queue *jobQueue
	w     http.ResponseWriter
	r     *http.Request
	base  string // the path of all jobs, as it was asked for
	owner string // empty for those who show nothing
	who   string // whom waiting counts for
}

// serve answers for what stands below .../geoproxy/jobs.
func (q *jobQueue) serve(w http.ResponseWriter, r *http.Request, c *compiled, ask *Ask, base, name string) {
	who := caller{Header: ask.Header, Query: ask.Query, Peer: ask.Peer, TLS: ask.TLS}
	tenant := c.tenants.identify(&who)
	j := &jobRequest{queue: q, w: w, r: r, base: base, owner: q.owner(c, &who, &tenant), who: tenant.ID}
	h := w.Header()
	h["Cache-Control"] = []string{"no-store"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if rt, err := c.routes.find(ask.Host, ask.Path); err == nil && rt != nil {
		if origin := first(r.Header["Origin"]); origin != "" {
			rt.cors.apply(origin, h)
		}
	}
	id, rest, _ := strings.Cut(name, "/")
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	switch {
	case method == http.MethodOptions && len(h["Access-Control-Allow-Origin"]) > 0:
		h["Access-Control-Allow-Methods"] = []string{"GET, HEAD, DELETE"}
		h["Access-Control-Allow-Headers"] = []string{"Accept, Authorization, Range, X-Api-Key"}
		w.WriteHeader(http.StatusNoContent)
	case method == http.MethodGet && name == "":
		j.list()
	case method == http.MethodGet && name == "hint":
		j.hint()
	case method == http.MethodGet && rest == "":
		j.status(id)
	case method == http.MethodDelete && rest == "":
		j.cancel(id)
	case method == http.MethodGet && rest == "results":
		j.results(id)
	case rest == "" || rest == "results":
		h["Allow"] = []string{"GET, HEAD, DELETE"}
		j.problem(http.StatusMethodNotAllowed, "about:blank", "Method Not Allowed", "jobs are read with GET and cancelled with DELETE", nil)
	default:
		j.unknown()
	}
}

// find gives a job that the caller may see. Who may not gets the answer of an
// unknown id, and so does who asks for what is no id.
func (j *jobRequest) find(ctx context.Context, text string) (*jobs.Job, bool) {
	id, ok := jobs.ParseID(text)
	if !ok {
		j.unknown()
		return nil, false
	}
	job, err := j.queue.store.Get(ctx, id)
	switch {
	case errors.Is(err, jobs.ErrUnknown), err == nil && job.Owner != "" && job.Owner != j.owner:
		j.unknown()
		return nil, false
	case err != nil:
		j.unavailable(err)
		return nil, false
	}
	return job, true
}

func (j *jobRequest) unknown() {
	j.problem(http.StatusNotFound, typeNoSuchJob, "No such job", "there is no such job, or it is not this caller's", nil)
}

func (j *jobRequest) unavailable(err error) {
	if j.r.Context().Err() != nil {
		return // nobody reads it
	}
	j.queue.proxy.log.WarnContext(j.r.Context(), "the store of jobs: reading", "error", err)
	j.w.Header()[headerRetryAfter] = []string{strconv.Itoa(constantWait)}
	j.problem(http.StatusServiceUnavailable, typeJobsStore, "The store of jobs is not available", "try again in a few seconds: the job is not affected", nil)
}

// problem writes a problem document (RFC 9457).
func (j *jobRequest) problem(status int, kind, title, detail string, more map[string]any) {
	action, retryable := "stop", false
	switch status {
	case http.StatusServiceUnavailable:
		action, retryable = "retry", true
	case http.StatusNotFound:
		if kind == typeNotReady {
			action, retryable = "wait_job", true
		}
	}
	doc := struct {
		Message   string `json:"message"`
		Action    string `json:"action"`
		Retryable bool   `json:"retryable"`
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Upstream  any    `json:"upstream,omitempty"`
		JobID     any    `json:"jobID,omitempty"`
		Reason    any    `json:"reason,omitempty"`
	}{strings.ToUpper(detail[:1]) + detail[1:] + ".", action, retryable, kind, title, status, more["upstream"], more["jobID"], more["reason"]}
	body, err := json.Marshal(&doc)
	if err != nil {
		body = []byte("{}") // only text
	}
	j.write(status, "application/problem+json", body)
}

func (j *jobRequest) write(status int, contentType string, body []byte) {
	h := j.w.Header()
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	j.w.WriteHeader(status)
	if j.r.Method != http.MethodHead {
		_, _ = j.w.Write(body) // a caller that has gone cannot be told
	}
}

func (j *jobRequest) document(job *jobs.Job) {
	d := job.Describe(j.base)
	if d.RetryAfter > 0 {
		j.w.Header()[headerRetryAfter] = []string{strconv.Itoa(d.RetryAfter)}
	}
	j.write(http.StatusOK, jobType(j.r.Header), d.JSON())
}

// jobType is the content type of a job's document: its own for those who name
// it, and for everybody else the one that all JSON has.
func jobType(h http.Header) string {
	if acceptsJob(h) {
		return mediaJob
	}
	return "application/json"
}

// list gives the caller's own jobs, newest first.
func (j *jobRequest) list() {
	query := j.r.URL.Query()
	f := jobs.Filter{Limit: listDefault}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			j.problem(http.StatusBadRequest, typeJobsList, "Request refused", "limit must be a number from 1 to 100", nil)
			return
		}
		f.Limit = min(n, listMost)
	}
	if text := query.Get("status"); text != "" {
		state, ok := jobs.ParseState(text)
		if !ok {
			j.problem(http.StatusBadRequest, typeJobsList, "Request refused", "status must be accepted, running, successful, failed or dismissed", nil)
			return
		}
		f.State = state
	}
	if text := query.Get("cursor"); text != "" {
		after, ok := j.queue.marks.ParseCursor(j.owner, text)
		if !ok {
			j.unknown()
			return
		}
		f.After = after
	}
	answer := struct {
		Jobs  []jobs.Document `json:"jobs"`
		Links []jobs.Link     `json:"links"`
	}{[]jobs.Document{}, []jobs.Link{{Href: j.base, Rel: "self", Type: "application/json"}}}
	if j.owner != "" {
		ctx, cancel := context.WithTimeout(j.r.Context(), storeTime)
		defer cancel()
		list, err := j.queue.store.List(ctx, j.owner, f)
		if err != nil {
			j.unavailable(err)
			return
		}
		for _, job := range list {
			answer.Jobs = append(answer.Jobs, job.Describe(j.base))
		}
		if len(list) == f.Limit {
			last := list[len(list)-1]
			cursor := j.queue.marks.Cursor(j.owner, jobs.Cursor{Created: last.Created, ID: last.ID})
			next := j.base + "?limit=" + strconv.Itoa(f.Limit) + "&cursor=" + cursor
			if f.State != "" {
				next += "&status=" + string(f.State)
			}
			answer.Links = append(answer.Links, jobs.Link{Href: next, Rel: "next", Type: "application/json"})
		}
	}
	body, err := json.Marshal(&answer)
	if err != nil {
		j.unavailable(err)
		return
	}
	j.write(http.StatusOK, "application/json", body)
}

// hint is one line for a prompt: what has finished, and how much still runs.
func (j *jobRequest) hint() {
	var list []*jobs.Job
	if j.owner != "" {
		ctx, cancel := context.WithTimeout(j.r.Context(), storeTime)
		defer cancel()
		var err error
		if list, err = j.queue.store.List(ctx, j.owner, jobs.Filter{Limit: listMost}); err != nil {
			j.unavailable(err)
			return
		}
	}
	j.write(http.StatusOK, "text/plain; charset=utf-8", []byte(jobs.Hint(list)))
}

// status tells of a job: at once, when it has changed (?wait), or whenever it
// changes (an event stream). Who asks too often gets what was told last.
func (j *jobRequest) status(text string) {
	ctx, cancel := context.WithTimeout(j.r.Context(), storeTime)
	defer cancel()
	wait := min(wholeSeconds(j.r.URL.Query().Get("wait")), longestWait)
	if wait == 0 && !wantsEvents(j.r) { // who waits is slow enough
		id, _ := jobs.ParseID(text)
		if last, ok := j.queue.toldJustNow(id); ok && (last.Owner == "" || last.Owner == j.owner) {
			j.document(last)
			return
		}
	}
	job, ok := j.find(ctx, text)
	if !ok {
		return
	}
	switch {
	case wantsEvents(j.r):
		if j.enter() {
			defer j.leave()
			j.events(job)
			return
		}
	case wait > 0 && !job.State.Ended() && j.enter():
		waited, done := context.WithTimeout(j.r.Context(), wait)
		_ = j.queue.engine.Wait(waited, job) // whatever ended it, the job is read again
		done()
		j.leave()
		if j.r.Context().Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(j.r.Context(), storeTime)
		defer cancel()
		if job, ok = j.find(ctx, text); !ok {
			return
		}
	}
	j.queue.told(job)
	j.document(job)
}

func wantsEvents(r *http.Request) bool {
	return strings.Contains(first(r.Header["Accept"]), "text/event-stream")
}

// events streams the job's document at each change, until it has ended.
func (j *jobRequest) events(job *jobs.Job) {
	h := j.w.Header()
	h["Content-Type"] = []string{"text/event-stream"}
	j.w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(j.w)
	for {
		d := job.Describe(j.base)
		if _, err := fmt.Fprintf(j.w, "event: status\ndata: %s\n\n", strings.TrimSpace(string(d.JSON()))); err != nil || control.Flush() != nil {
			return
		}
		if job.State.Ended() {
			return
		}
		for {
			ctx, cancel := context.WithTimeout(j.r.Context(), streamPing)
			err := j.queue.engine.Wait(ctx, job)
			cancel()
			if j.r.Context().Err() != nil {
				return
			}
			if errors.Is(err, context.DeadlineExceeded) {
				if _, err := io.WriteString(j.w, ": still there\n\n"); err != nil || control.Flush() != nil {
					return
				}
				continue
			}
			if err != nil {
				return // it is gone, or cannot be asked about: the caller asks again
			}
			break
		}
		next, err := j.queue.store.Get(j.r.Context(), job.ID)
		if err != nil {
			return
		}
		job = next
	}
}

// enter counts a wait of the caller's, and reports whether it may.
func (j *jobRequest) enter() bool {
	q := j.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[j.who] >= mostWaiting {
		return false
	}
	q.waiting[j.who]++
	return true
}

func (j *jobRequest) leave() {
	q := j.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[j.who]--; q.waiting[j.who] == 0 {
		delete(q.waiting, j.who)
	}
}

// toldJustNow gives what was told of a job less than half a second ago.
func (q *jobQueue) toldJustNow(id jobs.ID) (*jobs.Job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, ok := q.asked[id]
	if !ok || time.Since(last.at) >= leastApart {
		return nil, false
	}
	return last.job, true
}

func (q *jobQueue) told(job *jobs.Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.asked) >= mostAsked {
		clear(q.asked)
	}
	known := *job
	known.Request, known.Answer = nil, nil // only what is told is kept
	q.asked[job.ID] = lastAnswer{time.Now(), &known}
}

func (q *jobQueue) untold(id jobs.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asked, id)
}

// cancel dismisses a job, or forgets one that has ended, with its result.
func (j *jobRequest) cancel(text string) {
	ctx, cancel := context.WithTimeout(j.r.Context(), storeTime)
	defer cancel()
	job, ok := j.find(ctx, text)
	if !ok {
		return
	}
	j.queue.untold(job.ID)
	if job.State.Ended() {
		if err := j.queue.store.Forget(ctx, job.ID); err != nil && !errors.Is(err, jobs.ErrUnknown) {
			j.unavailable(err)
			return
		}
		d := job.Describe(j.base)
		d.Message, d.Action, d.Links = "Deleted: "+string(job.ID)+" and its result are forgotten.", "stop", nil
		j.write(http.StatusOK, jobType(j.r.Header), d.JSON())
		return
	}
	job, err := j.queue.engine.Cancel(ctx, job.ID)
	if err != nil {
		j.unavailable(err)
		return
	}
	j.document(job)
}

// results gives what the upstream answered: status, header and body, or why
// there is nothing of that.
func (j *jobRequest) results(text string) {
	ctx, cancel := context.WithTimeout(j.r.Context(), storeTime)
	defer cancel()
	job, ok := j.find(ctx, text)
	if !ok {
		return
	}
	about := map[string]any{"jobID": job.ID}
	switch {
	case job.Gone:
		j.problem(http.StatusGone, typeJobGone, "The result has expired", "the result was deleted at its time: send the request again", about)
	case job.State == jobs.Accepted || job.State == jobs.Running:
		d := job.Describe(j.base)
		j.w.Header()[headerRetryAfter] = []string{strconv.Itoa(max(1, d.RetryAfter))}
		j.problem(http.StatusNotFound, typeNotReady, "The result is not ready", "not the result yet: ask GET "+j.base+"/"+string(job.ID)+"?wait=30", about)
	case job.State == jobs.Dismissed:
		j.problem(http.StatusNotFound, typeJobFailed, "The job was cancelled", "cancelled: there is no result", about)
	case job.State == jobs.Failed:
		j.failed(job, about)
	default:
		j.result(job)
	}
}

// failed tells why there is no result.
func (j *jobRequest) failed(job *jobs.Job, about map[string]any) {
	status := http.StatusBadGateway
	switch job.Reason {
	case jobs.ReasonTimeout:
		status = http.StatusGatewayTimeout
	case jobs.ReasonTooLarge, "never-fits", "bad-request":
		status = http.StatusUnprocessableEntity
	case jobs.ReasonQueueWait, jobs.ReasonLost, jobs.ReasonStoreFull, "store":
		status = http.StatusServiceUnavailable
	}
	about["reason"] = job.Reason
	if answer, err := j.queue.answer(job); err == nil && answer.Status != 0 {
		about["upstream"] = map[string]any{"status": answer.Status, "content_type": first(answer.Header["Content-Type"]), "body": answer.Body}
	}
	why := job.Error
	if why == "" {
		why = "no error was recorded"
	}
	j.problem(status, typeJobFailed, "The job failed", why, about)
}

func (q *jobQueue) answer(job *jobs.Job) (keptAnswer, error) {
	var answer keptAnswer
	if job.Answer == nil {
		return answer, fs.ErrNotExist
	}
	text, err := q.sealer.Open(string(job.ID), job.Answer)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}

// result passes the stored answer on, or the ranges of it that were asked for.
func (j *jobRequest) result(job *jobs.Job) {
	answer, err := j.queue.answer(job)
	if err != nil {
		j.unavailable(err)
		return
	}
	blob, err := j.queue.store.OpenBlob(j.r.Context(), job.Result)
	if err != nil {
		j.unavailable(err)
		return
	}
	defer blob.Close() //nolint:errcheck // it was only read
	body, err := j.queue.sealer.Reader(blob, job.Result)
	if err != nil {
		j.unavailable(err)
		return
	}
	h := j.w.Header()
	maps.Copy(h, answer.Header)
	h["Cache-Control"] = []string{"private, no-store"}
	if answer.Status == http.StatusOK && len(j.r.Header["Range"]) > 0 {
		// Without a name and a time it looks at the ranges, and at If-Range
		// where the upstream gave an ETag.
		http.ServeContent(j.w, j.r, "", time.Time{}, body)
		return
	}
	if answer.Status == http.StatusOK {
		h["Accept-Ranges"] = []string{"bytes"}
	}
	if answer.Status != http.StatusNoContent && answer.Status != http.StatusNotModified {
		h["Content-Length"] = []string{strconv.FormatInt(body.Size(), 10)}
	}
	j.w.WriteHeader(answer.Status)
	if j.r.Method == http.MethodHead {
		return
	}
	if _, err := io.Copy(j.w, body); err != nil {
		panic(http.ErrAbortHandler) //nolint:forbidigo // how a handler says that an answer broke off
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.r.Context()), storeTime)
	defer cancel()
	_ = j.queue.store.Collected(ctx, job.ID) // it is only kept longer
}
