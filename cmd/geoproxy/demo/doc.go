// Package demo shows what geoproxy does, with nothing but this program: a small
// spatial service over Natural Earth data, geoproxy in front of it, and requests
// to try.
//
// # The service
//
// [Service] stands for the many spatial servers that put a connection pool in
// front of a database and an unbounded line in front of the pool. It computes
// for real (an R-tree, intersection, union, buffer, vector and raster tiles) and
// adds a pause for each row and vertex, as a database's disk does, so that a
// dear query holds one of its eight connections for seconds. It speaks OGC API
// Features and Processes, and XYZ tiles with their TileJSON and style.
//
// # The demonstration
//
// [Start] runs both on loopback ports. [Stage.Steps] are requests that each show one
// behaviour, to paste into a shell or to run and check at once; [Storm] sends an
// agent's burst at the service, without geoproxy and with it, and compares.
//
//go:generate sh -c "cd data && go run build.go"
package demo
