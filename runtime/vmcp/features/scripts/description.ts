/**
 * The script tool's description for models. The description is specific to the caller, because it lists the caller's
 * tools.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (execute_tool_script).
 */
import { serverTools } from '../../../../schemas/index.ts'
import type { CallableTool } from './binding.ts'

export const executeToolScriptName = serverTools.executeToolScript

/**
 * Maximum number of listed tools. The description is part of every request to a model, so longer lists are truncated.
 */
const maxListed = 60
const maxTextLength = 8_000
const maxDescription = 80
const maxParameters = 12

const scriptInputSchema = {
  type: 'object',
  properties: {
    script: {
      type: 'string',
      description:
        'The script, in Starlark (a subset of Python). Its top-level `return` provides the result. Example: issues = github_list_issues(repo="acme/app")\nreturn [i["title"] for i in issues if i["open"]]',
    },
    data: {
      type: 'object',
      description: 'Values for the script. Each key becomes a variable, and `data` contains all values.',
      additionalProperties: true,
    },
  },
  required: ['script'],
  additionalProperties: false,
  examples: [
    {
      script:
        'results = parallel([lambda c=c: call_tool("get-weather", city=c) for c in cities])\nreturn {c: r for c, r in zip(cities, results)}',
      data: { cities: ['Oslo', 'Lima'] },
    },
  ],
} as const

const introduction = `Runs a Starlark script that calls several tools and returns one result. Use it to chain, filter or combine tool calls instead of making them one at a time.

- Call a tool by its function name with keyword arguments, or by its tool name: call_tool("tool-name", key=value). The call returns the tool's structured result, or its text (JSON text is parsed). Multiple content items are returned as a list: text as above, images and other content as dicts with type, data and mimeType.
- parallel([f, g]) runs functions that take no arguments concurrently and returns their results in order. Pass loop variables as default arguments: parallel([lambda x=x: f(x) for x in xs]).
- print(...) writes a log line that is returned along with the result.
- An error from a tool ends the script. There is no try, while, import, class, recursion or f-string; use for, if, def, lambda, comprehensions and "...".format(...).`

/** Returns the tool in the form that tools/list returns to a caller with these tools. */
export function describeTool(tools: readonly CallableTool[]): string {
  return JSON.stringify({
    name: executeToolScriptName,
    description: `${introduction}\n\n${listing(tools)}`,
    inputSchema: scriptInputSchema,
  })
}

function listing(tools: readonly CallableTool[]): string {
  if (tools.length === 0) return 'No tools are available to you.'
  const lines: string[] = []
  let length = 0
  for (const tool of tools) {
    const line = lineOf(tool)
    length += line.length
    if (lines.length >= maxListed || length > maxTextLength) break
    lines.push(line)
  }
  const left = tools.length - lines.length
  const more =
    left === 0
      ? ''
      : `\n... and ${left} more: find them with find_tool or tools/list, and call them with call_tool("name", ...).`
  return `Tools (* marks required arguments):\n${lines.join('\n')}${more}`
}

function lineOf({ name, fn, parameters, required, description }: CallableTool): string {
  const shown = parameters
    .slice(0, maxParameters)
    .map((parameter) => (required.has(parameter) ? `${parameter}*` : parameter))
  if (parameters.length > maxParameters) shown.push('...')
  const signature =
    fn === undefined
      ? `call_tool(${[JSON.stringify(name), ...shown].join(', ')})`
      : `${fn}(${shown.join(', ')})`
  const text = shortened(description.replaceAll(/\s+/g, ' ').trim())
  return text === '' ? `- ${signature}` : `- ${signature}: ${text}`
}

function shortened(text: string): string {
  return text.length > maxDescription ? `${text.slice(0, maxDescription - 3)}...` : text
}
