"""Placeholder while the socket is being written."""

from channels.generic.websocket import AsyncJsonWebsocketConsumer


class LiveConsumer(AsyncJsonWebsocketConsumer):
    pass
