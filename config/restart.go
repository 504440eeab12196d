package config

// NeedsRestart lists the keys that differ between two configs and that a
// running process cannot take over.
func NeedsRestart(running, next *File) []string {
	var changed []string
	for _, k := range []struct{ key, running, next string }{
		{"listen", running.Listen, next.Listen},
		{"health", running.Health, next.Health},
		{"admin", running.Admin, next.Admin},
		{"redis", running.Redis, next.Redis},
		{"data_dir", running.DataDir, next.DataDir},
		{"secret", running.Secret, next.Secret},
		{"jobs.store", running.Jobs.Store, next.Jobs.Store},
		{"jobs.key", running.Jobs.Key, next.Jobs.Key},
		{"tls", running.TLS.on(), next.TLS.on()},
	} {
		if k.running != k.next {
			changed = append(changed, k.key)
		}
	}
	if next.NeedsJobs() && !running.NeedsJobs() {
		changed = append(changed, "routes") // it was started without a store of jobs
	}
	return changed
}

// on tells a listener with TLS from one without: which files it reads may
// change while it runs, whether it encrypts may not.
func (t TLS) on() string {
	if t.Cert == "" {
		return "off"
	}
	return "on"
}

// refuse gives the mistake of each change of next that needs a restart.
func refuse(running, next *File) error {
	var mistakes MistakesError
	for _, key := range NeedsRestart(running, next) {
		at := next.source.places.find(key)
		mistakes = append(mistakes, Finding{
			File: next.source.path, Line: at.line, Column: at.column, Path: key,
			Message: "was changed: that needs a restart; the running config stays",
		})
	}
	if len(mistakes) > 0 {
		return mistakes
	}
	return nil
}
