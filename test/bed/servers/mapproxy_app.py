"""MapProxy in the server that it brings along, without the watcher that
mapproxy-util puts around it: that would outlive its starter."""

from mapproxy.util.ext import serving
from mapproxy.wsgiapp import make_wsgi_app

host, port = "{{.MapProxy}}".split(":")
serving.run_simple(host, int(port), make_wsgi_app("{{.Run}}/mapproxy.yaml"), threaded=True)
