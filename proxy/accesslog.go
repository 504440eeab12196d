package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/geoproxy/geoproxy/shed"
)

// logAccess writes all that explains a verdict in one line. Nothing in it
// shows a key, a signature, or what people typed.
func (p *Proxy) logAccess(s *served, out outcome, reason shed.Reason, total time.Duration) {
	v, est := s.verdict, &s.verdict.Estimate
	attrs := []slog.Attr{
		slog.String("route", v.routeName()),
		slog.String("method", s.ask.Method),
		slog.String("host", s.ask.Host),
		slog.String("url", v.config.redact.url(requestURI(&s.ask))),
		slog.String("outcome", string(out)),
		slog.Int("status", s.status()),
		slog.String("tenant", v.Tenant.ID),
		slog.Bool("verified", v.Tenant.Verified),
		slog.String("address", v.Tenant.Address),
		slog.Duration("total", total),
		slog.Duration("admission", v.Waited),
	}
	if reason != "" {
		attrs = append(attrs, slog.String("reason", string(reason)))
	}
	if v.Tenant.Name != "" {
		attrs = append(attrs, slog.String("name", v.Tenant.Name))
	}
	if v.class != nil {
		attrs = append(attrs,
			slog.String("family", est.Family), slog.String("op", est.Op), slog.String("class", est.Class.String()),
			slog.String("mode", string(v.Mode)), slog.String("why", v.ModeReason()),
			slog.Float64("estimate", est.Seconds), slog.Bool("low_confidence", est.Low), slog.String("basis", est.Basis),
			slog.Float64("features", est.Features), slog.Float64("vertices", est.Vertices), slog.Float64("cells", est.Cells))
	}
	if v.Shadow != "" {
		attrs = append(attrs, slog.String("shadow", string(v.Shadow)))
	}
	if x := &s.exchange; x.owner != nil {
		attrs = append(attrs, slog.Duration("upstream", x.waited), slog.Int64("bytes_up", x.upBytes), slog.Int64("bytes_down", x.downBytes))
		if x.err != nil {
			attrs = append(attrs, slog.String("error", redactError(x.err)))
		}
	}
	p.log.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}

// status is what the caller was answered with, 499 where it had gone.
func (s *served) status() int {
	switch {
	case s.verdict.Refusal != nil:
		return s.verdict.Refusal.Status
	case s.exchange.sent:
		return s.exchange.status
	default:
		return s.exchange.fault.status()
	}
}

func requestURI(ask *Ask) string {
	if ask.Query == "" {
		return ask.Path
	}
	return ask.Path + "?" + ask.Query
}
