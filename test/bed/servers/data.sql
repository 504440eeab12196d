-- What the servers serve, the same on every machine: about 50,000 parcels,
-- 200,000 addresses, 20,000 roads and 12 districts between 5.00 and 5.12
-- degrees east and 52.0 and 52.1 north. EPSG:4326 throughout.

CREATE EXTENSION postgis;

-- A number from 0 up to 1 that depends on its arguments alone.
CREATE FUNCTION noise(n bigint, of bigint) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT (hashint8extended(n, of) & 16777215) / 16777216.0::float8 $$;

CREATE FUNCTION wgs84(lon float8, lat float8) RETURNS geometry
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ST_SetSRID(ST_MakePoint(lon, lat), 4326) $$;

-- Neighbours share their corners, so that the parcels cover the ground without
-- gaps or overlaps.
CREATE TEMPORARY TABLE corner AS
SELECT x, y, wgs84(5.0 + 0.00048 * (x + 0.4 * noise(x * 1000 + y, 1) - 0.2),
                   52.0 + 0.0005 * (y + 0.4 * noise(x * 1000 + y, 2) - 0.2)) AS p
FROM generate_series(0, 250) AS x, generate_series(0, 200) AS y;
CREATE UNIQUE INDEX ON corner (x, y);

CREATE TABLE parcels AS
SELECT (a.x * 200 + a.y + 1)::int AS gid,
       format('NL-%s-%s', lpad(a.x::text, 3, '0'), lpad(a.y::text, 3, '0')) AS parcel_no,
       (ARRAY['farmland', 'forest', 'housing', 'industry', 'water'])[1 + floor(5 * noise(a.x * 1000 + a.y, 3))::int] AS landuse,
       round((20000 + 800000 * noise(a.x * 1000 + a.y, 4))::numeric, 2) AS value_eur,
       date '1985-01-01' + floor(14000 * noise(a.x * 1000 + a.y, 5))::int AS registered,
       'Zuiderstraße ' || a.y || ', blok ' || a.x AS label,
       ST_MakePolygon(ST_MakeLine(ARRAY[a.p, b.p, c.p, d.p, a.p]))::geometry(Polygon, 4326) AS geom
FROM corner a
JOIN corner b ON b.x = a.x + 1 AND b.y = a.y
JOIN corner c ON c.x = a.x + 1 AND c.y = a.y + 1
JOIN corner d ON d.x = a.x AND d.y = a.y + 1
ORDER BY 1;

CREATE TABLE addresses AS
SELECT n AS gid, 'Street ' || n % 1009 AS street, 1 + n % 180 AS house_no,
       (ARRAY['house', 'office', 'school', 'shop'])[1 + floor(4 * noise(n, 11))::int] AS kind,
       wgs84(5.0 + 0.12 * noise(n, 12), 52.0 + 0.1 * noise(n, 13))::geometry(Point, 4326) AS geom
FROM generate_series(1, 200000) AS n;

-- From 12 to 31 vertices each, heading one way with a wobble.
CREATE TABLE roads AS
SELECT n AS gid, 'Road ' || n AS name, (ARRAY['motorway', 'primary', 'residential'])[1 + n % 3] AS class,
       ST_SetSRID(ST_MakeLine(ARRAY(
         SELECT ST_MakePoint(5.0 + 0.12 * noise(n, 21) + step * 0.0004 * (noise(n, 23) - 0.5) + 0.0001 * noise(n * 100 + step, 25),
                             52.0 + 0.1 * noise(n, 22) + step * 0.0003 * (noise(n, 24) - 0.5) + 0.0001 * noise(n * 100 + step, 26))
         FROM generate_series(0, 11 + n % 20) AS step)), 4326)::geometry(LineString, 4326) AS geom
FROM generate_series(1, 20000) AS n;

-- Few rows and many bytes: 20,001 vertices each.
CREATE TABLE districts AS
SELECT n AS gid, 'District ' || n AS name,
       ST_Buffer(wgs84(5.015 + 0.03 * (n % 4), 52.0165 + 0.033 * (n / 4)), 0.014, 'quad_segs=5000')::geometry(Polygon, 4326) AS geom
FROM generate_series(0, 11) AS n;

ALTER TABLE parcels ADD PRIMARY KEY (gid);
ALTER TABLE addresses ADD PRIMARY KEY (gid);
ALTER TABLE roads ADD PRIMARY KEY (gid);
ALTER TABLE districts ADD PRIMARY KEY (gid);
CREATE INDEX ON parcels USING gist (geom);
CREATE INDEX ON addresses USING gist (geom);
CREATE INDEX ON roads USING gist (geom);
CREATE INDEX ON districts USING gist (geom);

-- One row after so many seconds: a query that is slow and uses no processor.
CREATE FUNCTION sleepy(seconds float8) RETURNS TABLE (gid int, geom geometry)
LANGUAGE sql VOLATILE AS
$$ SELECT 1, wgs84(5.05, 52.05) FROM pg_sleep(seconds) $$;

ANALYZE;
