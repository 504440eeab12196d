"""Writes two GeoTIFFs over the bed's ground into the folder given: dem.tif
(heights, float32) and ortho.tif (three bands, 8 bits). Both are computed, so
every machine gets the same cells."""

import sys

import numpy
from osgeo import gdal, osr

gdal.UseExceptions()
SIZE = 2000
WEST, NORTH, WIDTH, HEIGHT = 5.0, 52.1, 0.12, 0.1


def write(name, bands, kind, options):
    out = gdal.GetDriverByName("GTiff").Create(f"{sys.argv[1]}/{name}", SIZE, SIZE, len(bands), kind, options)
    out.SetGeoTransform((WEST, WIDTH / SIZE, 0, NORTH, 0, -HEIGHT / SIZE))
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(4326)
    out.SetProjection(reference.ExportToWkt())
    for number, band in enumerate(bands, 1):
        out.GetRasterBand(number).WriteArray(band)
    out.BuildOverviews("AVERAGE", [2, 4, 8])


row, column = numpy.mgrid[0:SIZE, 0:SIZE].astype("float32") / SIZE
height = 30 + 25 * numpy.sin(9 * column) * numpy.cos(7 * row) + 6 * numpy.sin(40 * (column + 0.6 * row))
write("dem.tif", [height.astype("float32")], gdal.GDT_Float32, ["TILED=YES", "COMPRESS=DEFLATE"])
colours = [(height * share).clip(0, 255).astype("uint8") for share in (3.5, 3.0, 2.0)]
write("ortho.tif", colours, gdal.GDT_Byte, ["TILED=YES", "COMPRESS=DEFLATE"])
