package classify_test

import "testing"

func FuzzTitiler(f *testing.F) { fuzzFamily(f, "titiler") }

func FuzzOSRM(f *testing.F) { fuzzFamily(f, "osrm") }

func FuzzValhalla(f *testing.F) { fuzzFamily(f, "valhalla") }

func FuzzORS(f *testing.F) { fuzzFamily(f, "ors") }

func FuzzGraphHopper(f *testing.F) { fuzzFamily(f, "graphhopper") }

func FuzzSTAC(f *testing.F) { fuzzFamily(f, "stac") }

func FuzzPelias(f *testing.F) { fuzzFamily(f, "pelias") }

func FuzzPhoton(f *testing.F) { fuzzFamily(f, "photon") }

func FuzzNominatim(f *testing.F) { fuzzFamily(f, "nominatim") }

func FuzzArcGIS(f *testing.F) { fuzzFamily(f, "arcgis") }

func FuzzOverpass(f *testing.F) { fuzzFamily(f, "overpass") }

func FuzzPostgREST(f *testing.F) { fuzzFamily(f, "postgrest") }

func FuzzSensorThings(f *testing.F) { fuzzFamily(f, "sensorthings") }
