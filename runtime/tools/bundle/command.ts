/** `gatehouse bundle` writes an MCPB file for clients that accept only local servers. `gatehouse unbundle` unpacks one. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { home, invalidConfig } from '../../../schemas/index.ts'

import { systemReason } from '../../config/index.ts'
import { visibleText } from '../../observe/index.ts'
import { print } from '../../toolkit/terminal/output.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'
import { version } from '../../toolkit/terminal/self.ts'
import { writeArchive } from './archive.ts'
import { type BundleOptions, bundleOf } from './manifest.ts'
import { unpackBundle } from './unpack.ts'

interface Options extends Omit<BundleOptions, 'url'> {
  readonly output?: string
  readonly force: boolean
}

export function addBundleCommand(program: Command): void {
  program
    .command('bundle')
    .summary('write an MCPB file for clients that accept only local servers')
    .description(
      'Writes an MCPB file (.mcpb) that connects a client, such as Claude Desktop, to a server with\n' +
        '"gatehouse proxy stdio". The same options always produce the same bytes. The file contains no secrets.',
    )
    .argument('<url>', 'URL of the server, such as https://mcp.example.com/mcp')
    .option('-o, --output <file>', 'file to write (default: NAME.mcpb)')
    .option('--name <name>', 'name of the bundle (default: from the host of the URL)')
    .option('--title <title>', 'name that the client displays')
    .option('--bundle-version <version>', 'version of the bundle', '1.0.0')
    .option('--author <name>', 'author of the bundle (default: the host of the URL)')
    .option('--remote-auth', 'log in to the server in the browser', false)
    .option('--installed', 'run the installed gatehouse instead of the npm package', false)
    .option('--force', 'overwrite the file', false)
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse bundle https://mcp.example.com/mcp --remote-auth\n' +
        '  gatehouse bundle https://mcp.example.com/mcp --title "Example tools" -o example.mcpb\n' +
        '\nExit codes: 0 written, 2 invalid usage, or the file cannot be written.',
    )
    .action(async (url: string, options: Options) => bundle(url, options))
}

async function bundle(url: string, options: Options): Promise<void> {
  const { name, files } = bundleOf({ ...options, url }, { name: home.npm, version })
  const archive = await writeArchive(files)
  const path = options.output ?? `${name}.mcpb`
  try {
    writeFileSync(path, archive, { flag: options.force ? 'w' : 'wx' })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')
      throw invalidConfig(`${path}: already exists; add --force to overwrite it`, cause)
    throw invalidConfig(`${path}: cannot be written: ${systemReason(cause)}`, cause)
  }
  print(`${path}: sha256 ${createHash('sha256').update(archive).digest('hex')}`)
}

export function addUnbundleCommand(program: Command): void {
  program
    .command('unbundle')
    .summary('unpack an MCPB file after checking its digest')
    .description(
      'Unpacks an MCPB file into a new folder, and does not run anything. Rejects a file with another digest, and\n' +
        'archives with links, paths outside the folder, or contents that expand too much.',
    )
    .argument('<file>', 'MCPB file')
    .requiredOption('--sha256 <digest>', 'digest of the file, such as fileSha256 in a registry entry', sha256)
    .requiredOption('-o, --output <folder>', 'folder to create')
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse unbundle notes.mcpb --sha256 9f86d081… -o notes/\n' +
        '\nExit codes: 0 unpacked, 2 invalid usage, or the file was rejected.',
    )
    .action(async (file: string, { sha256: digest, output }: { sha256: string; output: string }) => {
      const { files, manifest } = await unpackBundle(file, digest, output)
      const shown = [manifest['name'], manifest['version']].map((part) =>
        visibleText(String(part).slice(0, 100)),
      )
      print(`${output}: ${shown.join(' ')}, ${quantity(files, 'file')}`)
    })
}

function sha256(text: string): string {
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new InvalidArgumentError('must be a SHA-256 digest: 64 hex digits')
  return text.toLowerCase()
}
