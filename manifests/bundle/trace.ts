/**
 * Restores the sources and names in a stack trace of a built program: `node manifests/bundle/trace.ts < trace.txt`,
 * after a build of the same commit. Built programs use short names and are shipped without source maps.
 */
import { existsSync, readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'

const maps = resolve(import.meta.dirname, '../../dist/maps')
/** The position of a stack frame: a program file, line and column. */
const place = /(?:file:\/\/)?[^\s()]*\/((?:runtime|hooks)\/[\w.-]+\.js):(\d+):(\d+)/g

const read = new Map<string, SourceMap | undefined>()

function mapOf(file: string): SourceMap | undefined {
  const path = join(maps, `${file}.map`)
  if (!read.has(file))
    read.set(file, existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : undefined)
  return read.get(file)
}

const trace = await text(process.stdin)
process.stdout.write(
  trace.replaceAll(place, (found, file: string, line: string, column: string) => {
    const origin = mapOf(file)?.findOrigin(Number(line), Number(column))
    if (origin === undefined || !('fileName' in origin)) return found
    const { fileName, lineNumber, columnNumber, name } = origin
    const source = fileName.replace(/^(?:\.\.\/)+/, '')
    return `${source}:${lineNumber}:${columnNumber}${name === undefined ? '' : ` ${name}`}`
  }),
)
