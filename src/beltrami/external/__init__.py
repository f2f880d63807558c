"""Preprocessing of graphs in folders, in bounded memory: conversion, PageRank, DeepWalk, neighbours, rewiring."""
