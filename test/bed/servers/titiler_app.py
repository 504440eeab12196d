"""TiTiler with its plain raster endpoints and the errors they map to."""

from fastapi import FastAPI
from titiler.core.errors import DEFAULT_STATUS_CODES, add_exception_handlers
from titiler.core.factory import TilerFactory

app = FastAPI()
app.include_router(TilerFactory(router_prefix="/cog").router, prefix="/cog")
add_exception_handlers(app, DEFAULT_STATUS_CODES)
