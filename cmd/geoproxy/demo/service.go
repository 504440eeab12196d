package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// connections is the size of the service's pool.
const connections = 8

// Service is a small spatial server over Natural Earth: OGC API Features, map
// tiles, and three processes. It behaves like those that it stands for: each
// query holds one of eight connections, the line for them has no end, and a
// query whose client has left runs on.
type Service struct {
	// Cancels stops the query of a client that has left, as only some servers do.
	Cancels bool

	mux  *http.ServeMux
	pool *pool
	ctx  context.Context //nolint:containedctx // a query outlives its request, not its service
	stop context.CancelFunc
}

// NewService makes a service with an idle pool. Close ends its queries.
func NewService() *Service {
	s := &Service{mux: http.NewServeMux(), pool: newPool(connections)}
	s.ctx, s.stop = context.WithCancel(context.Background())

	s.mux.HandleFunc("GET /{$}", s.plain(landing))
	s.mux.HandleFunc("GET /conformance", s.plain(conformance))
	s.mux.HandleFunc("GET /style.json", s.plain(style))
	s.mux.HandleFunc("GET /tiles/{file}", s.plain(tileJSON))
	s.mux.HandleFunc("GET /map", s.plain(mapPage))
	s.mux.HandleFunc("GET /pool", s.plain(func(*http.Request) (answer, error) { return jsonAnswer(s.pool.snapshot()) }))

	s.mux.HandleFunc("GET /collections", s.querying(listCollections))
	s.mux.HandleFunc("GET /collections/{collection}", s.querying(describeCollection))
	s.mux.HandleFunc("GET /collections/{collection}/items", s.querying(items))
	s.mux.HandleFunc("GET /collections/{collection}/items/{id}", s.querying(item))
	s.mux.HandleFunc("GET /tiles/{layer}/{z}/{x}/{y}", s.querying(tile))
	s.mux.HandleFunc("GET /processes", s.plain(listProcesses))
	s.mux.HandleFunc("GET /processes/{process}", s.plain(describeProcess))
	s.mux.HandleFunc("POST /processes/{process}/execution", s.querying(execute))
	return s
}

// Pool says what the connections are doing.
func (s *Service) Pool() PoolStats { return s.pool.snapshot() }

// Close ends the queries that run or wait.
func (s *Service) Close() { s.stop() }

// ServeHTTP answers pages of any origin: the data is public.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.Method == http.MethodOptions {
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Prefer, Priority")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// answer is what goes out with 200, or with 204 where there is nothing to send.
type answer struct {
	contentType string
	body        []byte
}

func jsonAnswer(v any) (answer, error) { return typedAnswer("application/json", v) }

func typedAnswer(contentType string, v any) (answer, error) {
	body, err := json.Marshal(v)
	return answer{contentType, append(body, '\n')}, err
}

// query is the part of an answer that needs a connection.
type query func(context.Context) (answer, error)

func (s *Service) plain(respond func(*http.Request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := respond(r)
		send(w, a, err)
	}
}

// querying reads the request, waits for a connection, and runs the query on it.
// What cannot be read is refused before it needs one.
func (s *Service) querying(prepare func(*http.Request) (query, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		run, err := prepare(r)
		if err != nil {
			send(w, answer{}, err)
			return
		}
		ctx := s.ctx
		if s.Cancels {
			var stop context.CancelFunc
			ctx, stop = context.WithCancel(r.Context())
			defer stop()
			defer context.AfterFunc(s.ctx, stop)()
		}
		a, err := s.onConnection(ctx, run)
		send(w, a, err)
	}
}

func (s *Service) onConnection(ctx context.Context, run query) (answer, error) {
	if err := s.pool.take(ctx); err != nil {
		return answer{}, err
	}
	defer s.pool.put(true)
	return run(ctx)
}

// failure is an error that the client is told, with its status.
type failure struct {
	status int
	detail string
}

func (f failure) Error() string { return f.detail }

func badRequest(detail string) error { return failure{http.StatusBadRequest, detail} }
func notFound(detail string) error   { return failure{http.StatusNotFound, detail} }

// send writes an answer, or the error as a problem (RFC 9457).
func send(w http.ResponseWriter, a answer, err error) {
	if err == nil {
		if len(a.body) == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", a.contentType)
		_, _ = w.Write(a.body) // the client may have left
		return
	}
	f := failure{http.StatusInternalServerError, err.Error()}
	if errors.Is(err, context.Canceled) {
		f.status = http.StatusServiceUnavailable
	}
	errors.As(err, &f)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(f.status), "status": f.status, "detail": f.detail})
}

// base is the address under which the client knows the service, which is the
// proxy's where one is in front.
func base(r *http.Request) string {
	scheme, host := "http", r.Host
	if v := r.Header.Get("X-Forwarded-Proto"); v != "" {
		scheme = v
	}
	if v := r.Header.Get("X-Forwarded-Host"); v != "" {
		host, _, _ = strings.Cut(v, ",")
	}
	return scheme + "://" + strings.TrimSpace(host)
}

// work is the size of what a query read.
type work struct{ rows, vertices int }

// pace is how long a query takes beyond what it computes: its own planning, and
// what each row and vertex costs to bring in. The proxy's config (front.go) has
// the same numbers, as an operator would find them by measuring.
type pace struct{ query, row, vertex time.Duration }

var (
	itemsPace   = pace{5 * time.Millisecond, time.Millisecond, 10 * time.Microsecond}
	tilePace    = pace{5 * time.Millisecond, 200 * time.Microsecond, 2 * time.Microsecond}
	bufferPace  = pace{10 * time.Millisecond, time.Millisecond, 800 * time.Microsecond}
	unionPace   = pace{10 * time.Millisecond, time.Millisecond, 100 * time.Microsecond}
	overlayPace = pace{10 * time.Millisecond, time.Millisecond, 50 * time.Microsecond}
)

func (p pace) of(w work) time.Duration {
	return p.query + time.Duration(w.rows)*p.row + time.Duration(w.vertices)*p.vertex
}
