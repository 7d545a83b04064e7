#!/bin/bash
# How the service is started.
export CUDA_VISIBLE_DEVICES=0,1
vllm serve mistralai/Mistral-7B-v0.1 \
    --dtype half --max-model-len 8192 --port 8000 &
