/**
 * Converts a program to an MCPServer, with the command for this machine, the image for a cluster, variables and
 * secrets.
 *
 * `gatehouse dev` runs the annotated command. In a cluster, package runners have a default image. Other programs need
 * an image. Until an image is set, a reserved host name serves as a placeholder.
 */
import { own, apiVersion, localCommandAnnotation } from '../../../../schemas/index.ts'
import type { Note, EntryProgram } from '../entries/entry.ts'
import { packageOf, programName } from '../entries/package.ts'
import { literalOf } from '../entries/value.ts'
import { convertArguments, escapeReferences } from './arguments.ts'
import { type ManifestDraft, type ConversionContext, NotTaken } from './context.ts'
import { isSecret } from './secrets.ts'
import type { SecretKey } from './secret-store.ts'

/** Port of an HTTP server in a cluster. */
const clusterPort = 8080

/** Images for the package runners, with each image's start command. */
export const runnerImages: Readonly<
  Record<string, { readonly image: string; readonly command: readonly string[] }>
> = {
  npx: { image: 'docker.io/library/node:24-bookworm-slim', command: ['npx'] },
  // This image has no home folder for non-root users.
  uvx: {
    image: 'ghcr.io/astral-sh/uv:python3.13-bookworm-slim',
    command: ['env', 'HOME=/tmp', 'uvx'],
  },
}

export function serverDraft(program: EntryProgram, context: ConversionContext): ManifestDraft {
  const { options } = context
  const notes: Note[] = []
  const command = context.text(program.command, 'command')
  const { env, secrets } = variablesOf(program, context)
  const usedNames = new Set(program.env.keys())
  const filled = program.args.map((value, index) => context.filled(value, `argument ${index + 1}`))
  const { args, literal, variables, positions } = convertArguments(filled, usedNames, options.keepSecretArgs)
  for (const [name, value] of variables) secrets.push(variable(name, context.secret(name, value)))
  for (const position of positions) {
    notes.push({
      field: `argument ${position}`,
      text: 'contains a secret: it is now a variable from a Secret, but programs on this machine can still see it in the process list',
      loses: false,
    })
  }
  const cluster = clusterForm(program, context, literal ?? args)
  // A resource's arguments are literal. A pod's arguments can refer to variables.
  const pod = {
    ...(cluster.command && { command: cluster.command }),
    ...(!literal && { args: cluster.args }),
  }
  notes.push(...cluster.notes, ...pathNotes(args, program))
  return {
    notes,
    manifest: {
      apiVersion,
      kind: 'MCPServer',
      metadata: {
        name: context.name,
        annotations: {
          ...context.annotations,
          [localCommandAnnotation]: quoteCommand([escapeReferences(command), ...args]),
        },
      },
      spec: {
        groupRef: { name: options.group },
        image: cluster.image,
        transport: program.http ? 'streamable-http' : 'stdio',
        ...(program.http && { mcpPort: clusterPort }),
        ...(literal && cluster.args.length > 0 && { args: cluster.args }),
        ...(env.length > 0 && { env }),
        ...(secrets.length > 0 && { secrets }),
        ...(cluster.volumes.length > 0 && { volumes: cluster.volumes }),
        ...(Object.keys(pod).length > 0 && {
          podTemplateSpec: { spec: { containers: [{ name: 'mcp', ...pod }] } },
        }),
      },
    },
  }
}

interface Variables {
  readonly env: { name: string; value: string }[]
  readonly secrets: { name: string; key: string; targetEnvName?: string }[]
}

function variablesOf(program: EntryProgram, context: ConversionContext): Variables {
  const result: Variables = { env: [], secrets: [] }
  for (const [name, value] of program.env) {
    const filled = context.filled(value, `variable ${name}`)
    const text = literalOf(filled)
    const isOpen = text !== undefined && (context.options.plain.has(name) || !isSecret(name, text))
    if (isOpen) result.env.push({ name, value: text })
    else result.secrets.push(variable(name, context.secret(name, filled)))
  }
  return result
}

function variable(name: string, { name: secret, key }: SecretKey): Variables['secrets'][number] {
  return { name: secret, key, ...(key !== name && { targetEnvName: name }) }
}

interface ClusterForm {
  readonly image: string
  readonly command: readonly string[] | undefined
  readonly args: readonly string[]
  readonly volumes: readonly Readonly<Record<string, unknown>>[]
  readonly notes: readonly Note[]
}

/** Returns the image and arguments for a cluster. `args` are the program's converted arguments. */
function clusterForm(
  program: EntryProgram,
  context: ConversionContext,
  args: readonly string[],
): ClusterForm {
  const chosenImage = context.options.images.get(context.original) ?? context.options.images.get(context.name)
  const { container } = program
  if (container) {
    const ownArgs = args.slice(args.length - container.args.length)
    const image = chosenImage ?? container.image
    return {
      image,
      command: undefined,
      args: ownArgs,
      volumes: volumesOf(container, context),
      notes: [needsCommand],
    }
  }
  const inCluster = args.map((arg) => arg.replaceAll('{port}', String(clusterPort)))
  const runner = own(runnerImages, programName(program.command) ?? '')
  if (runner && packageOf(program)) {
    return {
      image: chosenImage ?? runner.image,
      command: runner.command,
      args: inCluster,
      volumes: [],
      notes: [],
    }
  }
  const notes = chosenImage === undefined ? [needsImage] : program.http ? [] : [needsCommand]
  const image = chosenImage ?? `set-an-image.invalid/${context.name}:latest`
  return { image, command: undefined, args: chosenImage === undefined ? inCluster : [], volumes: [], notes }
}

const needsImage: Note = {
  field: 'image',
  text: 'a cluster requires an image: set --image NAME=IMAGE; gatehouse dev does not need one',
  loses: false,
}
const needsCommand: Note = {
  field: 'image',
  text: 'a cluster also requires the command in the image: set the command of the mcp container in podTemplateSpec.spec.containers',
  loses: false,
}

function volumesOf(container: NonNullable<EntryProgram['container']>, { options }: ConversionContext) {
  return container.volumes.map(({ host, mount, readOnly }, index) => {
    const hostPath = host.replace(/^~(?=\/|$)/, options.home)
    if (!hostPath.startsWith('/')) {
      throw new NotTaken(`volume ${index + 1} is a relative path; use an absolute path`)
    }
    return { name: `volume-${index + 1}`, hostPath, mountPath: mount, ...(readOnly && { readOnly }) }
  })
}

/** Returns a note when arguments refer to folders on this machine. */
function pathNotes(args: readonly string[], { container }: EntryProgram): Note[] {
  const isLocal = !container && args.some((arg) => /^(?:[~.]?\.?[/\\]|[A-Za-z]:[/\\]|\.$|~$)/.test(arg))
  if (!isLocal) return []
  return [
    {
      field: 'args',
      text: 'refer to folders on this machine, which do not exist in a cluster',
      loses: false,
    },
  ]
}

/** Returns a command line that `gatehouse dev` splits into the same words. No shell is involved. */
export function quoteCommand(words: readonly string[]): string {
  return words.map(quoteWord).join(' ')
}

function quoteWord(word: string): string {
  if (/^[\w@%+=:,./~{}-]+$/.test(word)) return word
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}
