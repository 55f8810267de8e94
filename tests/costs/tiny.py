"""A space that is built, exported and measured within a second or two."""

TINY = """
format: binas/space
version: 1
name: tiny
channels: 3
resolution: 16
stem: [cn_r1_k3_s2_c8_nre]
stages:
  - name: s1
    depths: [1, 2]
    family: mbconv
    channels: 8
    stride: 1
    activation: re
    configs: {expansion: [2, 3], kernel: [3], se: [off, on]}
  - name: s2
    depths: [1, 2]
    family: mbconv
    channels: 16
    stride: 2
    activation: hs
    configs: {expansion: [2], kernel: [3, 5], se: [off]}
head: [cn_r1_k1_s1_c32]
classes: 5
"""
