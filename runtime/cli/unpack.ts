/**
 * `gatehouse unpack FOLDER` copies this program to a folder where it can run in any Linux container, regardless of the
 * image.
 *
 * An init container with the runtime image runs this command before a stdio server starts in the server's own image.
 * The copy contains Node, the dynamic loader and every shared library that Node uses. The loader starts the copy.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isSea } from 'node:sea'
import type { Command } from 'commander'
import { GatehouseError } from '../../schemas/index.ts'
import { print } from '../toolkit/terminal/output.ts'

export function addUnpackCommand(program: Command): void {
  program
    .command('unpack', { hidden: true })
    .argument('<folder>', 'target folder, created if needed')
    .description('Copies this program with its loader and libraries so that it can run inside another image.')
    .action((folder: string) => {
      unpack(folder)
      print(`unpacked to ${folder}`)
    })
}

interface Report {
  readonly sharedObjects: readonly string[]
}

function unpack(folder: string): void {
  const { sharedObjects } = process.report.getReport() as unknown as Report
  const files = sharedObjects.filter((path) => path.startsWith('/'))
  const loader = files.find((path) => /^ld-(linux|musl)[^/]*\.so/.test(basename(path)))
  if (isSea()) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: 'unpack works only in the runtime image, not in the single executable',
    })
  }
  if (process.platform !== 'linux' || !loader) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: 'unpack works only on Linux with a dynamically linked Node',
    })
  }
  mkdirSync(join(folder, 'lib'), { recursive: true })
  copyFileSync(process.execPath, join(folder, 'node'))
  copyFileSync(loader, join(folder, 'ld.so'))
  copyProgram(folder)
  for (const path of files)
    if (path !== process.execPath) copyFileSync(path, join(folder, 'lib', basename(path)))
}

/**
 * Files that must be next to the launcher. These files exist only after a build, so a program that runs from source
 * cannot be unpacked.
 */
const parts = ['gatehouse.js', 'package.json', 'runtime', 'cedar'] as const

function copyProgram(folder: string): void {
  const from = dirname(realpathSync(process.argv[1] ?? ''))
  for (const part of parts) {
    if (!existsSync(join(from, part))) {
      throw new GatehouseError('INVALID_CONFIG', {
        detail: `unpack needs a built program, but ${join(from, part)} is missing: run it from an image, or run make build first`,
      })
    }
    cpSync(join(from, part), join(folder, part), { recursive: true })
  }
}
