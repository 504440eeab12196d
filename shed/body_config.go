package shed

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/geoproxy/geoproxy/classify"
)

// The values of BodyConfig.Body.
const (
	bodyNative = "native"
	bodyEmpty  = "empty"
)

// StatusFor gives the status of a refusal: contract, unless the config maps
// the class, else the family, else the reason to another.
func (c *BodyConfig) StatusFor(reason Reason, class classify.Class, family string, contract int) int {
	if len(c.Status) == 0 {
		return contract
	}
	if status, ok := c.Status[class.String()]; ok {
		return status
	}
	if status, ok := c.Status[family]; ok {
		return status
	}
	if status, ok := c.Status[string(reason)]; ok {
		return status
	}
	return contract
}

// Check reports every mistake in the config, with the path of its key.
func (c *BodyConfig) Check(report func(path, message string)) {
	switch c.Body {
	case "", bodyNative, bodyEmpty:
	default:
		report("body", fmt.Sprintf("%q is neither native nor empty", c.Body))
	}
	success := false
	for _, name := range slices.Sorted(maps.Keys(c.Status)) {
		path, status := "status."+name, c.Status[name]
		if !mayHaveStatus(name) {
			report(path, "is neither a reason nor a class nor a family")
			continue
		}
		if problem := statusProblem(status); problem != "" {
			report(path, fmt.Sprintf("%d %s", status, problem))
			continue
		}
		if status < 300 {
			success = true
			if !c.Silent {
				report(path, fmt.Sprintf("%d makes a refusal look like an answer: it has to be spelt silent: true", status))
			}
		}
	}
	if c.Silent && !success {
		report("silent", "does nothing: no status below 300 is mapped")
	}
}

// mayHaveStatus reports whether name is one of those that Status maps.
func mayHaveStatus(name string) bool {
	_, err := classify.ParseClass(name)
	return err == nil || slices.Contains(Reasons(), Reason(name)) || slices.Contains(classify.Families(), name)
}

// statusProblem says why a refusal cannot have the status, or "".
func statusProblem(status int) string {
	switch {
	case status == http.StatusOK, status == http.StatusNoContent:
		return ""
	case status == http.StatusAccepted:
		return "says that a job was accepted, and none was"
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		return "asks for credentials, which would not help"
	case status >= 400 && status <= 599:
		return ""
	}
	return "is no status of a refusal: 400 to 599, or with silent: true 200 or 204"
}
