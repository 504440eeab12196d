package classify

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// The bounds of a rule's expressions. The cost is CEL's own measure, about one
// for each operation and each tenth of a byte that it looks at: enough to
// search a query of 64 KiB a few times, too little to notice.
const (
	maxExpression = 4096 // code points
	maxDepth      = 32
	maxRuleCost   = 100_000
)

// rule is a compiled [Rule].
type rule struct {
	op         string
	class      Class // 0 where the method decides
	replayable *bool
	when       cel.Program // nil matches everything
	seconds    cel.Program // these are nil where the rule does not say
	features   cel.Program
	vertices   cel.Program
	cells      cel.Program
	body       bool // some expression reads the body
	query      bool // some expression reads the query
	// based says that the config gives the operation a base, which is then the
	// price where the rule gives none.
	based bool
}

// mistake is what is wrong with one key of a rule.
type mistake struct{ key, message string }

// ruleEnv is what the expressions of rules may name.
type ruleEnv struct{ *cel.Env }

func newRuleEnv() (ruleEnv, error) {
	texts := cel.MapType(cel.StringType, cel.StringType)
	env, err := cel.NewEnv(
		cel.Variable("request.method", cel.StringType),
		cel.Variable("request.host", cel.StringType),
		cel.Variable("request.path", cel.StringType),
		cel.Variable("request.headers", texts),
		cel.Variable("query", texts),
		cel.Variable("body.bytes", cel.IntType),
		cel.Variable("body.features", cel.IntType),
		cel.Variable("body.vertices", cel.IntType),
		cel.Variable("body.bbox", cel.ListType(cel.DoubleType)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxDepth),
	)
	return ruleEnv{env}, err
}

// compile compiles a rule and gives every mistake in it.
func (env ruleEnv) compile(r *Rule) (out rule, mistakes []mistake) {
	out = rule{op: r.Op, replayable: r.Replayable}
	wrong := func(key, format string, args ...any) {
		mistakes = append(mistakes, mistake{key, fmt.Sprintf(format, args...)})
	}
	if !validOp(r.Op) {
		wrong("op", "must be a name of letters, digits and _ - . : of at most 64 characters")
	}
	if r.Class != "" {
		class, err := ParseClass(r.Class)
		if err != nil {
			wrong("class", "%v", err)
		}
		out.class = class
	}
	if out.class == Write && r.Replayable != nil && *r.Replayable {
		wrong("replayable", "contradicts class write: a write is never repeated")
	}
	if r.Seconds != "" && (r.Features != "" || r.Vertices != "" || r.Cells != "") {
		wrong("seconds", "leaves nothing for features, vertices and cells to say: give one or the other")
	}
	for _, e := range []struct {
		key, text string
		program   *cel.Program
		wants     []*cel.Type
	}{
		{"when", r.When, &out.when, []*cel.Type{cel.BoolType}},
		{"seconds", r.Seconds, &out.seconds, numbers},
		{"features", r.Features, &out.features, numbers},
		{"vertices", r.Vertices, &out.vertices, numbers},
		{"cells", r.Cells, &out.cells, numbers},
	} {
		if e.text == "" {
			continue
		}
		program, reads, wrongs := env.expression(e.text, e.wants)
		for _, message := range wrongs {
			wrong(e.key, "%s", message)
		}
		*e.program, out.body, out.query = program, out.body || reads.body, out.query || reads.query
	}
	return out, mistakes
}

var numbers = []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType}

// reads is what an expression looks at that is not always the same.
type reads struct{ body, query bool }

// expression compiles one expression, which has to give one of the types.
func (env ruleEnv) expression(text string, wants []*cel.Type) (program cel.Program, uses reads, wrongs []string) {
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			wrongs = append(wrongs, fmt.Sprintf("column %d: %s", e.Location.Column()+1, e.Message))
		}
		return nil, reads{}, wrongs
	}
	if got := checked.OutputType(); !slices.ContainsFunc(wants, got.IsExactType) {
		want := "a number"
		if len(wants) == 1 {
			want = wants[0].String()
		}
		return nil, reads{}, []string{fmt.Sprintf("column 1: gives %s, not %s", got, want)}
	}
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			uses.body = uses.body || strings.HasPrefix(e.AsIdent(), "body.")
			uses.query = uses.query || e.AsIdent() == "query"
		}
		if name := keyOf(e); secretName(name) {
			at := checked.NativeRep().SourceInfo().GetStartLocation(e.ID())
			wrongs = append(wrongs, fmt.Sprintf("column %d: %q is a credential, which rules do not see", at.Column()+1, name))
		}
	}))
	if len(wrongs) > 0 {
		return nil, reads{}, wrongs
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxRuleCost))
	if err != nil {
		return nil, reads{}, []string{"column 1: " + err.Error()}
	}
	return program, uses, nil
}

// keyOf gives the header or query key that e looks up: m.key, m["key"] or
// "key" in m.
func keyOf(e ast.Expr) string {
	if e.Kind() == ast.SelectKind {
		if isTexts(e.AsSelect().Operand()) {
			return e.AsSelect().FieldName()
		}
		return ""
	}
	if e.Kind() != ast.CallKind {
		return ""
	}
	var m, key ast.Expr
	switch args := e.AsCall().Args(); e.AsCall().FunctionName() {
	case operators.Index:
		m, key = args[0], args[1]
	case operators.In:
		m, key = args[1], args[0]
	default:
		return ""
	}
	if !isTexts(m) || key.Kind() != ast.LiteralKind {
		return ""
	}
	name, _ := key.AsLiteral().Value().(string)
	return name
}

// isTexts reports whether e is one of the two maps that rules see.
func isTexts(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && (e.AsIdent() == "request.headers" || e.AsIdent() == "query")
}

func validOp(op string) bool {
	for i := range len(op) {
		if c := op[i]; !isDigit(c) && !isLetter(c) && strings.IndexByte("_-.:", c) < 0 {
			return false
		}
	}
	return op != "" && len(op) <= 64
}

// class is the class of a request that the rule matches.
func (r *Rule) class(method string) Class {
	if class, err := ParseClass(r.Class); err == nil {
		return class
	}
	return classOf(method)
}

// classOf is the class of a request that says nothing more than its method.
func classOf(method string) Class {
	if (&Request{Method: method}).read() {
		return Read
	}
	return Write
}

// estimate prices a request that the rule matches.
func (r *rule) estimate(in *ruleInput, m model) (e Estimate, matched bool) {
	if r.when != nil {
		out, _, err := r.when.Eval(in)
		if err != nil || out != types.True {
			return Estimate{}, false
		}
	}
	a := answer{Call: Call{Family: familyHTTP, Op: r.op, Class: r.class}}
	if a.Class == 0 {
		a.Class = classOf(in.request.Method)
	}
	a.Replayable = in.request.read() && a.Class != Write
	if r.replayable != nil {
		a.Replayable = *r.replayable
	}
	if r.seconds != nil {
		seconds, ok := evalNumber(r.seconds, in)
		if !ok {
			return r.failed(a, m), true
		}
		a.Basis = "seconds by rule"
		return Estimate{Call: a.Call, Seconds: clampSeconds(seconds)}, true
	}
	said := false
	for _, input := range []struct {
		program cel.Program
		amount  *float64
	}{{r.features, &a.Features}, {r.vertices, &a.Vertices}, {r.cells, &a.Cells}} {
		if input.program == nil {
			continue
		}
		var ok bool
		if *input.amount, ok = evalNumber(input.program, in); !ok {
			return r.failed(a, m), true
		}
		said = true
	}
	if !said && !r.based {
		return r.failed(a, m), true
	}
	a.Basis = r.basis(a.Inputs)
	return m.price(a), true
}

// failed prices what the rule matches but cannot price: the default cost, at
// low confidence.
func (r *rule) failed(a answer, m model) Estimate {
	a.Inputs = Inputs{}
	a.Basis = "default cost"
	return Estimate{Call: a.Call, Seconds: clampSeconds(m.unknown.base), Low: true}
}

func (r *rule) basis(in Inputs) string {
	var b basis
	b.text("by rule")
	for _, input := range []struct {
		program cel.Program
		amount  float64
		name    string
	}{{r.features, in.Features, " features"}, {r.vertices, in.Vertices, " vertices"}, {r.cells, in.Cells, " cells"}} {
		if input.program != nil {
			b.text(" ").number(clampInput(input.amount)).text(input.name)
		}
	}
	return b.String()
}

// evalNumber evaluates an expression that gives a number. False is one that
// fails, runs over its cost, or gives NaN.
func evalNumber(p cel.Program, in *ruleInput) (float64, bool) {
	out, _, err := p.Eval(in)
	if err != nil {
		return 0, false
	}
	var x float64
	switch out := out.(type) {
	case types.Int:
		x = float64(out)
	case types.Uint:
		x = float64(out)
	case types.Double:
		x = float64(out)
	default:
		return 0, false
	}
	return x, !math.IsNaN(x)
}

// ruleInput gives the expressions what they name, and works it out when they do.
type ruleInput struct {
	request  *Request
	path     string // one reading of the request's
	headers  map[string]string
	query    map[string]string
	geometry Geometry
	counted  bool
}

var _ interpreter.Activation = (*ruleInput)(nil)

// Parent is part of [interpreter.Activation].
func (in *ruleInput) Parent() interpreter.Activation { return nil }

// ResolveName is part of [interpreter.Activation].
func (in *ruleInput) ResolveName(name string) (any, bool) {
	r := in.request
	switch name {
	case "request.method":
		return r.Method, true
	case "request.host":
		return r.Host, true
	case "request.path":
		return in.path, true
	case "request.headers":
		if in.headers == nil {
			in.headers = make(map[string]string, len(r.Header))
			for key, values := range r.Header {
				if key = strings.ToLower(key); !secretName(key) {
					in.headers[key] = strings.Join(values, ", ")
				}
			}
		}
		return in.headers, true
	case "query":
		if in.query == nil {
			in.query = queryMap(r.Query)
		}
		return in.query, true
	case "body.bytes":
		return bodyBytes(r.Body), true
	case "body.features":
		return int64(in.count().Features), true
	case "body.vertices":
		return int64(in.count().Vertices), true
	case "body.bbox":
		return in.bbox()
	}
	return nil, false
}

func (in *ruleInput) count() Geometry {
	if !in.counted {
		in.geometry, in.counted = in.request.count(), true
		in.geometry.Features, in.geometry.Vertices = clampInput(in.geometry.Features), clampInput(in.geometry.Vertices)
	}
	return in.geometry
}

// bbox is [west, south, east, north] of what was read of a GeoJSON body. False,
// which fails the expression, is a body without a position.
func (in *ruleInput) bbox() ([]float64, bool) {
	r := in.request
	b := BoundsBody(r.Body, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Type"))
	return []float64{b.MinX, b.MinY, b.MaxX, b.MaxY}, !b.Empty()
}

// bodyBytes is the length of a body, the most that is counted where nobody said it.
func bodyBytes(b Body) int64 {
	switch {
	case b.Length >= 0:
		return max(b.Length, int64(len(b.Prefix)))
	case b.Whole:
		return int64(len(b.Prefix))
	}
	return UnknownBodyBytes
}

// queryMap is the last value of each key, without credentials.
func queryMap(raw string) map[string]string { return queryReading(raw, false, false) }

// queryReadings calls visit with every other map that an upstream may make of a
// query: of a repeated key it may take the first value, and ';' may end a pair.
func queryReadings(raw string, visit func(map[string]string)) {
	last := queryMap(raw)
	split := []bool{false}
	if strings.IndexByte(raw, ';') >= 0 {
		split = append(split, true)
		visit(queryReading(raw, false, true))
	}
	for _, semicolons := range split {
		if first := queryReading(raw, true, semicolons); !maps.Equal(first, last) {
			visit(first)
		}
	}
}

// queryReading is one value of each key, the first or the last, without
// credentials. Pairs end at '&', and at ';' where asked.
func queryReading(raw string, first, semicolons bool) map[string]string {
	query := make(map[string]string)
	ends := func(c rune) bool { return c == '&' || semicolons && c == ';' }
	for part := range strings.FieldsFuncSeq(raw, ends) {
		key, value, _ := strings.Cut(part, "=")
		name := escaped(key).text()
		if _, known := query[name]; known && first || secretName(name) {
			continue
		}
		query[name] = escaped(value).text()
	}
	return query
}

// secretName reports whether a header or query key holds what proves who
// somebody is. Rules price requests; they have no need of it.
func secretName(name string) bool {
	if len(name) > 64 {
		return false
	}
	switch name = strings.ToLower(name); name {
	case "authorization", "proxy-authorization", "cookie", "token", "sig", "signature", "password", "passwd", "secret":
		return true
	}
	for _, part := range [...]string{"api-key", "api_key", "apikey", "-token", "_token", "-signature", "x-amz-credential", "client_secret"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
