/**
 * The worker thread that converts OpenAPI documents, one at a time. The thread communicates only through messages.
 *
 * This file is bundled separately from the program. See workers/worker-file.ts.
 */
import { parentPort } from 'node:worker_threads'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  convertOpenApi,
  type OpenApiTool,
  requestDigest,
  requestDigestKey,
} from '../../../../schemas/openapi/index.ts'
import type { ConversionReply, ConversionTask, ConvertedTool } from './convert.ts'

const maxLines = 20

function converted({ text, settings }: ConversionTask): ConversionReply {
  try {
    const { tools, skipped, notices } = convertOpenApi(text, settings)
    const lines = skipped
      .slice(0, maxLines)
      .map(({ operation, reason, message }) => `${operation.slice(0, 200)}: ${reason}: ${message}`)
    const unused = notices
      .filter(({ code }) => code === 'unused_filter' || code === 'unused_override')
      .slice(0, maxLines)
      .map(({ message }) => message)
    return {
      kind: 'converted',
      value: { tools: tools.map(toolOf), skipped: skipped.length, skippedLines: lines, unused },
    }
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    return { kind: 'rejected', reason: error.message }
  }
}

/** Sends JSON texts instead of objects, because copying texts between threads takes much less time. */
function toolOf({ request, ...definition }: OpenApiTool): ConvertedTool {
  const listed = { ...definition, _meta: { [requestDigestKey]: requestDigest(request) } }
  return { name: definition.name, definition: JSON.stringify(listed), plan: JSON.stringify(request) }
}

parentPort?.on('message', (task: ConversionTask) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
  parentPort?.postMessage(converted(task))
})
