/** Public API for OpenAPI documents: conversion to tools, and construction of the request that a tool call sends. */
export { convertOpenApi, summarizeOpenApi } from './convert.ts'
export type {
  ConversionNotice,
  OpenApiConversion,
  OpenApiSettings,
  OpenApiTool,
  OperationFilter,
  RequestPlan,
} from './model.ts'
export { buildRequest, type BuiltRequest } from './request/build.ts'
export { requestDigest, requestDigestKey } from './request/digest.ts'
