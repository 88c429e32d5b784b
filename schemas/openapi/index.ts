/** Public API for OpenAPI documents: the conversion to tools, and the request that a call of a tool sends. */
export { convertOpenApi } from './convert.ts'
export type { OpenApiConversion, OpenApiSettings, OpenApiTool, OperationFilter } from './model.ts'
export { buildRequest, type BuiltRequest } from './request/build.ts'
