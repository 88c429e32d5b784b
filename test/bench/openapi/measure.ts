/**
 * Converts one document and prints one line of JSON: `node measure.ts FILE default|all`. Runs in its own process, so
 * that the peak memory belongs to this document. Compiles every schema, as the clients of the MCP SDKs do.
 */
import { readFileSync } from 'node:fs'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  convertOpenApi,
  type OpenApiConversion,
  type OpenApiSettings,
} from '../../../schemas/openapi/index.ts'

const [file = '', selection] = process.argv.slice(2)
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const settings: OpenApiSettings = {
  ...(selection === 'all' && { operations: { include: [{ methods }], includeDeprecated: true } }),
  response: { output: 'enforce' },
}

function invalidSchemas({ tools }: OpenApiConversion): readonly string[] {
  const ajv = new Ajv2020({ strict: false, logger: false })
  addFormats.default(ajv)
  return tools.flatMap(({ name, inputSchema, outputSchema }) => {
    try {
      ajv.compile(inputSchema)
      if (outputSchema) ajv.compile(outputSchema)
      return []
    } catch (error) {
      return [`${name}: ${String(error)}`]
    }
  })
}

const text = readFileSync(file, 'utf8')
// CPU time, because other processes on the machine prolong the elapsed time.
const cpuMs = (): number => process.cpuUsage().user / 1_000 + process.cpuUsage().system / 1_000
const began = cpuMs()
let result: object
try {
  const conversion = convertOpenApi(text, settings)
  const milliseconds = Math.round(cpuMs() - began)
  const { maxRSS } = process.resourceUsage()
  const listed = conversion.tools.map(({ request: _, ...tool }) => tool)
  result = {
    milliseconds,
    mebibytes: Math.round(maxRSS / 1024),
    operations: conversion.operations,
    tools: conversion.tools.length,
    tokens: Math.ceil(JSON.stringify(listed).length / 4),
    skipped: conversion.skipped.map(({ reason }) => reason),
    invalid: invalidSchemas(conversion),
  }
} catch (error) {
  if (!(error instanceof GatehouseError)) throw error
  const milliseconds = Math.round(cpuMs() - began)
  const { rule } = error.data as { readonly rule: string }
  result = { milliseconds, mebibytes: Math.round(process.resourceUsage().maxRSS / 1024), rule }
}
console.log(JSON.stringify({ kibibytes: Math.round(Buffer.byteLength(text) / 1024), ...result }))
