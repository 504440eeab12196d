package demo

import (
	"net/http"
	"sync"
	"sync/atomic"
)

// crowdPath is where the map's page asks for a crowd. A browser opens six
// connections to a server at most, which is too few to fill a pool of eight.
const crowdPath = "/demo/crowd"

// withCrowd lets the page start half of a storm through geoproxy, all at once,
// and tells it what became of the calls. There is one crowd at a time.
func (s *Stage) withCrowd(next http.Handler) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != crowdPath || r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		if !one.TryLock() {
			send(w, answer{}, failure{http.StatusConflict, "a crowd is under way"})
			return
		}
		defer one.Unlock()
		a, err := s.crowd(r)
		send(w, a, err)
	})
}

func (s *Stage) crowd(r *http.Request) (answer, error) {
	questions, err := stormCalls()
	if err != nil {
		return answer{}, err
	}
	client := newClient()
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	var sent, answered, refused atomic.Int64
	for _, question := range questions[:len(questions)/2] {
		for _, c := range question {
			wg.Go(func() {
				sent.Add(1)
				switch reply := c.send(r.Context(), client, s.URL); {
				case reply.err != nil:
				case reply.status < 400:
					answered.Add(1)
				case reply.header.Get("Geoproxy-Reason") != "":
					refused.Add(1)
				}
			})
		}
	}
	wg.Wait()
	return jsonAnswer(map[string]int64{"sent": sent.Load(), "answered": answered.Load(), "refused": refused.Load()})
}
