package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

// ServeHTTP decides on a request and forwards or refuses it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.begin()
	defer p.requests.end()
	s := &served{proxy: p, request: r, ask: Ask{
		Request: classify.Request{Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header},
		Peer:    peerOf(r),
		TLS:     r.TLS,
		Arrived: time.Now(),
	}}
	if p.own(w, r, &s.ask) {
		return
	}
	s.ask.Body.Length = r.ContentLength
	if r.Body != nil && r.Body != http.NoBody {
		s.ask.ReadBody = func(limit int64, within time.Duration) classify.Body {
			prefix, body := readPrefix(r.Body, r.ContentLength, limit, within)
			r.Body = prefix
			return body
		}
	}

	v := p.admission.Decide(r.Context(), &s.ask)
	s.verdict = v
	defer s.finish()
	if !v.Admitted() {
		leaveBody(w, r)
		p.refuse(w, r, v, v.Refusal)
		return
	}
	defer v.Release()
	if v.Mode == ModeQueued {
		p.queue(w, r, s)
		return
	}
	p.forward(w, r, s)
}

// forward sends an admitted request on and answers for what became of it.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, s *served) {
	v, x := s.verdict, &s.exchange
	rt := v.route
	*x = exchange{
		owner: s, maxBody: rt.config.MaxBody, stream: &v.config.stream, streams: &p.streams,
		trusted: v.config.tenants.isTrusted(s.ask.Peer),
	}
	if !v.class.shadow { // there even what takes too long is only counted
		x.deadline = v.Deadline
	}
	var kept *keeper
	if v.modeIn.possible {
		// It may become a job: then it must be whole, and what was honoured
		// here is not the upstream's to honour.
		if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
			kept = keepBody(r.Body, rt.jobs.MaxBody)
			defer kept.free()
			r.Body = kept
		}
		if v.steer.async {
			stripPrefer(r.Header)
		}
		p.jobs.engine.Count(rt.name, false)
	}
	if rt.upstream.cancels() {
		rt.upstream.forward(w, r, x)
	} else {
		stays, detached, end := stayOn(w, r, v.Deadline)
		defer end()
		s.stays = true
		rt.upstream.forward(stays, detached, x)
	}
	if x.sent {
		return
	}
	if x.fault == faultDeadline && p.handOver(w, r, s, kept) {
		return
	}
	ref := v.refusal(x.fault.status(), x.fault.reason(), 0, "")
	switch x.fault {
	case faultGone:
		if errors.Is(context.Cause(r.Context()), errDraining) {
			ref = v.refusal(shed.Draining.Status(), shed.Draining, constantWait, "")
		}
	case faultDeadline:
		ref.Limit = shed.Limit{Name: "deadline", Value: v.Deadline.Sub(s.ask.Arrived).Seconds(), Unit: "s"}
		ref.Wait = v.retryAfter(wholeSecondsUp(v.class.admission))
		ref.Job = v.modeIn.onRequest && !v.modeIn.possible
	case faultBody:
		ref.Limit = shed.Limit{Name: "max_body", Value: float64(rt.config.MaxBody), Unit: "byte", Yours: float64(max(0, r.ContentLength))}
	case faultNone, faultUnreachable, faultSlow, faultBroken:
		ref.Wait = v.retryAfter(constantWait)
	}
	p.refuse(w, r, v, ref)
}

// retryAfter is wait for a request that may be sent again after the upstream
// was called, and none for one that may have done what it was sent for.
func (v *Verdict) retryAfter(wait int) int {
	if v.Estimate.Class == classify.Write {
		return 0
	}
	return wait
}

// refuse answers a refused request in the caller's own protocol.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, v *Verdict, ref *shed.Refusal) {
	h := w.Header()
	if ref.Reason == callerGone {
		// Nobody reads this but a client that has closed only its sending side.
		h["Connection"] = []string{"close"}
		w.WriteHeader(statusCallerGone)
		return
	}
	body := ref.Body(v.bodyConfig())
	v.stamp(h, 0)
	h[headerReason] = []string{string(ref.Reason)}
	h["Cache-Control"] = []string{"no-store"}
	h["X-Envoy-Ratelimited"] = []string{"true"}
	if ref.Wait > 0 {
		h[headerRetryAfter] = []string{strconv.Itoa(ref.Wait)}
	}
	if ref.Reason == shed.Draining {
		h["Connection"] = []string{"close"}
	}
	if body.ContentType != "" {
		h["Content-Type"] = []string{body.ContentType}
		h["X-Content-Type-Options"] = []string{"nosniff"}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body.Bytes))}
	if origin := first(r.Header["Origin"]); origin != "" && v.route != nil {
		v.route.cors.apply(origin, h)
	}
	if ref.Status < http.StatusBadRequest {
		p.metrics.silent.WithLabelValues(v.routeName(), string(ref.Reason)).Inc()
	}
	w.WriteHeader(ref.Status)
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, bytes.NewReader(body.Bytes)) // a caller that has gone cannot be told
	}
}

// outcome, reason and status are what a fault is called in metrics and on the wire.
func (f fault) outcome() outcome {
	switch f {
	case faultNone:
		return outcomeAnswered
	case faultDeadline:
		return outcomeOverran
	case faultGone, faultSlow:
		return outcomeGone
	case faultBody:
		return outcomeShed
	case faultUnreachable, faultBroken:
		return outcomeFailed
	default:
		return outcomeFailed
	}
}

func (f fault) reason() shed.Reason {
	switch f {
	case faultNone:
		return ""
	case faultDeadline:
		return shed.Deadline
	case faultGone:
		return callerGone
	case faultSlow, faultBody:
		return shed.BadRequest
	case faultUnreachable, faultBroken:
		return shed.Upstream
	default:
		return shed.Upstream
	}
}

func (f fault) status() int {
	switch f {
	case faultDeadline:
		return http.StatusGatewayTimeout
	case faultGone:
		return statusCallerGone
	case faultSlow:
		return http.StatusRequestTimeout
	case faultBody:
		return http.StatusRequestEntityTooLarge
	case faultNone, faultUnreachable, faultBroken:
		return http.StatusBadGateway
	default:
		return http.StatusBadGateway
	}
}

// peerOf is the address of whoever is connected; invalid over a unix socket.
func peerOf(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap()
}
