/**
 * `gatehouse openapi` shows the tools that an OpenAPI document produces, and the operations that are skipped. The
 * command reads one file and sends no requests.
 */
import { type Command, InvalidArgumentError } from 'commander'
import { type Fields, GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import {
  buildRequest,
  type BuiltRequest,
  convertOpenApi,
  type OpenApiConversion,
  type OpenApiSettings,
  type OpenApiTool,
  type OperationFilter,
} from '../../../schemas/openapi/index.ts'
import { readTextFile } from '../../config/index.ts'
import { standardText } from '../../toolkit/terminal/input.ts'
import { collect, jsonObject, refuseIdle } from '../../toolkit/terminal/options.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import { conversionObject, conversionText, requestText } from './report.ts'

interface Options {
  readonly include: readonly OperationFilter[]
  readonly exclude: readonly OperationFilter[]
  readonly includeDeprecated: boolean
  readonly outputSchemas: boolean
  readonly field: readonly string[]
  readonly request?: string
  readonly args?: Fields
  readonly json: boolean
}

export function addOpenApiCommand(program: Command): void {
  program
    .command('openapi')
    .summary('show the tools that an OpenAPI document produces')
    .description(
      'Converts an OpenAPI 3.0 or 3.1 document and shows the tools, their cost in tokens, and the skipped operations.\n' +
        'By default, GET and HEAD operations become tools. Select other operations by method or operationId.',
    )
    .argument('<file>', 'OpenAPI document in JSON or YAML, or - for standard input')
    .option(
      '--include <filter>',
      `operations to select, such as tag=pets,method=POST; keys: ${filterKeys.join(', ')}; repeatable (default: all GET and HEAD operations)`,
      collectFilter,
      [],
    )
    .option('--exclude <filter>', 'operations to exclude, in the same format; repeatable', collectFilter, [])
    .option('--include-deprecated', 'also select deprecated operations', false)
    .option('--no-output-schemas', 'omit output schemas, which saves tokens')
    .option(
      '--field <path>',
      'response member to keep, such as data.id; repeatable (default: all)',
      collect,
      [],
    )
    .option('--request <tool>', 'print the HTTP request that a call to this tool sends')
    .option('--args <json>', 'arguments for --request, as JSON or @file', jsonObject)
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse openapi openapi.yaml\n' +
        '  gatehouse openapi openapi.yaml --include tag=pets --include operationId=createPet\n' +
        "  gatehouse openapi openapi.yaml --include 'path=/pets/*,method=GET,method=POST' --json\n" +
        '  gatehouse openapi openapi.yaml --request get_pets_by_id --args \'{"id": "7"}\'\n' +
        '\nWithin a filter, all keys must match; a repeated key matches any of its values.\n' +
        '\nExit codes: 0 every selected operation became a tool, 1 the document was rejected or an operation was skipped,\n' +
        '2 invalid usage or unreadable input.',
    )
    .action((file: string, options: Options, command: Command) => {
      const isRequest = options.request !== undefined
      refuseIdle(command, [
        ['args', isRequest, 'has no effect without --request'],
        ['field', !isRequest, 'has no effect with --request'],
        ['outputSchemas', !isRequest, 'has no effect with --request'],
      ])
      process.exitCode = showTools(file, options)
    })
}

function showTools(file: string, options: Options): number {
  const text = file === '-' ? standardText('FILE') : readTextFile(file, file)
  const conversion = converted(text, options)
  if (conversion instanceof GatehouseError) {
    if (options.json) printJson({ error: conversion.message, ...rejectionOf(conversion) })
    else printError(forTerminal(conversion.message))
    return exitCode.failed
  }
  if (options.request !== undefined) showRequest(conversion, options.request, options)
  else if (options.json) printJson(conversionObject(conversion))
  else print(forTerminal(conversionText(conversion)))
  return conversion.skipped.length > 0 && options.request === undefined ? exitCode.failed : exitCode.ok
}

/** Returns the conversion, or the error if the whole document is rejected. */
function converted(text: string, options: Options): OpenApiConversion | GatehouseError {
  const settings: OpenApiSettings = {
    operations: {
      include: options.include,
      exclude: options.exclude,
      includeDeprecated: options.includeDeprecated,
    },
    response: { output: options.outputSchemas ? 'warn' : 'off', fields: options.field },
  }
  try {
    return convertOpenApi(text, settings)
  } catch (error) {
    if (error instanceof GatehouseError) return error
    throw error
  }
}

function rejectionOf({ data }: GatehouseError): object {
  return typeof data === 'object' && data !== null ? data : {}
}

function showRequest({ tools }: OpenApiConversion, name: string, { args = {}, json }: Options): void {
  const tool = tools.find((one) => one.name === name)
  if (!tool)
    throw invalidConfig(
      `--request: the document produces no tool named ${JSON.stringify(name.slice(0, 128))}`,
    )
  const request = requestOf(tool, args)
  if (json) printJson(request)
  else print(forTerminal(requestText(request)))
}

function requestOf(tool: OpenApiTool, args: Fields): BuiltRequest {
  try {
    return buildRequest(tool.request, args)
  } catch (error) {
    if (error instanceof GatehouseError) throw invalidConfig(`--args: ${error.message}`, error)
    throw error
  }
}

const filterFields = {
  operationId: 'operationIds',
  tag: 'tags',
  method: 'methods',
  path: 'paths',
} as const satisfies Readonly<Record<string, keyof OperationFilter>>
const filterKeys = Object.keys(filterFields)

function collectFilter(text: string, before: readonly OperationFilter[]): readonly OperationFilter[] {
  const filter: Partial<Record<keyof OperationFilter, string[]>> = {}
  for (const pair of text.split(',')) {
    const [, key = '', value] = /^(\w+)=(.+)$/s.exec(pair) ?? []
    if (value === undefined || !isFilterKey(key))
      throw new InvalidArgumentError(`Must be KEY=VALUE with one of the keys ${filterKeys.join(', ')}.`)
    ;(filter[filterFields[key]] ??= []).push(value)
  }
  return [...before, filter]
}

function isFilterKey(key: string): key is keyof typeof filterFields {
  return Object.hasOwn(filterFields, key)
}
