package classify_test

import (
	"fmt"

	"github.com/geoproxy/geoproxy/classify"
)

func ExampleClassifier_Estimate() {
	c, err := classify.New(classify.Config{Assume: classify.Assume{Vertices: 52}})
	if err != nil {
		fmt.Println(err)
		return
	}
	e := c.Estimate(&classify.Request{
		Method: "GET",
		Path:   "/collections/parcels/items",
		Query:  "limit=10000&offset=90000",
	})
	fmt.Printf("%s %s, a %s: %.2f s for %s\n", e.Family, e.Op, e.Class, e.Seconds, e.Basis)
	// Output: ogcapi items, a download: 1.33 s for offset=90000 + limit=10000 x 52 vertices
}
