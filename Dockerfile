# One image for web, worker and beat; the command decides (compose.yaml).
FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1
WORKDIR /app
COPY requirements.txt .
RUN pip install --require-hashes -r requirements.txt && useradd --create-home app
COPY . .
USER app
EXPOSE 8000
CMD ["uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--lifespan", "off", \
     "--ws", "websockets", "--ws-ping-interval", "20", "--ws-ping-timeout", "40", "--ws-max-size", "65536"]
