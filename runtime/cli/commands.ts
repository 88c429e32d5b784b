/** The table of commands. Each command has a name, a summary for the help text, and a loader that runs on demand. */
import type { Command } from 'commander'

export interface CommandRow {
  readonly summary: string
  readonly hidden?: boolean
  readonly load: () => Promise<unknown>
}

/**
 * Returns every command by name. `load` registers the command with `program`. Completion calls `loadCommand` to load a
 * command by name.
 */
export function commandsOf(
  program: Command,
  loadCommand: (name: string) => Promise<void>,
): Readonly<Record<string, CommandRow>> {
  return {
    proxy: {
      summary: 'run a transparent proxy in front of one MCP server',
      load: async () =>
        (await import('./proxy/proxy.ts')).addProxyCommand(program, {
          virtualServer: async (request) =>
            (await import('./vmcp/virtual-server.ts')).serveAsVirtualServer(request),
        }),
    },
    vmcp: {
      summary: 'serve many MCP servers behind one address',
      load: async () => (await import('./vmcp/vmcp.ts')).addVmcpCommand(program),
    },
    catalogue: {
      summary: 'serve a catalogue of published servers',
      load: async () => (await import('./catalogue/command.ts')).addCatalogueCommand(program),
    },
    relay: {
      summary: 'run a self-hosted relay for tunnels',
      load: async () => (await import('../tools/relay/command.ts')).addRelayCommand(program),
    },
    validate: {
      summary: 'check manifests offline',
      load: async () => (await import('./validate.ts')).addValidateCommand(program),
    },
    render: {
      summary: 'print the child objects that manifests produce, offline',
      load: async () => (await import('./render.ts')).addRenderCommand(program),
    },
    lock: {
      summary: 'write or check locks for approved backend definitions (MCPToolLock)',
      load: async () => (await import('../tools/lock/command.ts')).addLockCommand(program),
    },
    dev: {
      summary: 'run manifests on this machine, without a cluster',
      load: async () => (await import('./dev/command.ts')).addDevCommand(program),
    },
    logs: {
      summary: 'print the output of a server that runs on this machine',
      load: async () => (await import('./dev/logs-command.ts')).addLogsCommand(program),
    },
    run: {
      summary: 'run MCP servers behind one address, without manifests',
      load: async () => (await import('../tools/run/command.ts')).addRunCommand(program),
    },
    ...upCommands(program),
    tools: {
      summary: 'list and call an MCP server’s tools',
      load: async () => (await import('../tools/shell/command.ts')).addToolsCommand(program),
    },
    resources: {
      summary: 'list and read an MCP server’s resources',
      load: async () => (await import('../tools/shell/command.ts')).addResourcesCommand(program),
    },
    prompts: {
      summary: 'list and get an MCP server’s prompts',
      load: async () => (await import('../tools/shell/command.ts')).addPromptsCommand(program),
    },
    token: {
      summary: 'get an access token for an MCP server, without a browser',
      load: async () => (await import('../tools/token/command.ts')).addTokenCommand(program),
    },
    ...configurationCommands(program),
    doctor: {
      summary: 'find out why a client cannot reach or log in to an MCP server',
      load: async () => (await import('../tools/doctor/command.ts')).addDoctorCommand(program),
    },
    cluster: {
      summary: 'show the Gatehouse resources in a cluster, and explain why a resource is not ready',
      load: async () => (await import('../tools/cluster/command.ts')).addClusterCommand(program),
    },
    explain: {
      summary: 'explain why a caller can or cannot use a tool',
      load: async () => (await import('../tools/explain/command.ts')).addExplainCommand(program),
    },
    policy: {
      summary: 'test, explain and replay authorization policies',
      load: async () => (await import('../tools/policy/command.ts')).addPolicyCommand(program),
    },
    openapi: {
      summary: 'show the tools that an OpenAPI document produces',
      load: async () => (await import('../tools/openapi/command.ts')).addOpenApiCommand(program),
    },
    version: {
      summary: 'print the version, the platform and the protocol revisions',
      load: async () => (await import('./version.ts')).addVersionCommand(program),
    },
    completion: {
      summary: 'print a shell completion script',
      load: async () => (await import('./completion.ts')).addCompletionCommand(program),
    },
    __complete: {
      summary: 'print completion candidates for a command line',
      hidden: true,
      load: async () => (await import('./completion.ts')).addCompleteCommand(program, loadCommand),
    },
    unpack: {
      summary: 'copy this program so that it can run inside another image',
      hidden: true,
      load: async () => (await import('./unpack.ts')).addUnpackCommand(program),
    },
  }
}

/** The commands that run the servers of the user's MCP clients. */
function upCommands(program: Command): Readonly<Record<string, CommandRow>> {
  return {
    up: {
      summary: 'put the servers configured in all MCP clients behind one address',
      load: async () => (await import('../tools/up/command.ts')).addUpCommand(program),
    },
    down: {
      summary: 'stop "gatehouse up" and restore the clients’ files',
      load: async () => (await import('../tools/up/command.ts')).addDownCommand(program),
    },
    status: {
      summary: 'show the servers that "gatehouse up" runs',
      load: async () => (await import('../tools/up/command.ts')).addStatusCommand(program),
    },
    restart: {
      summary: 'restart a server that "gatehouse up" runs',
      load: async () => (await import('../tools/up/command.ts')).addRestartCommand(program),
    },
  }
}

/** The commands that write manifests, or the files of MCP clients. */
function configurationCommands(program: Command): Readonly<Record<string, CommandRow>> {
  return {
    import: {
      summary: 'convert server definitions from MCP clients or ToolHive to manifests',
      load: async () => {
        const { addImportToolhiveCommand } = await import('../tools/migration/command.ts')
        ;(await import('../tools/clients/command.ts')).addImportCommand(program, addImportToolhiveCommand)
      },
    },
    add: {
      summary: 'add an MCP server from a registry to manifests',
      load: async () => (await import('../tools/registry/command.ts')).addAddCommand(program),
    },
    client: {
      summary: 'add the gateway to MCP clients, or remove it',
      load: async () => (await import('../tools/clients/command.ts')).addClientCommand(program),
    },
    bundle: {
      summary: 'write an MCPB file for clients that accept only local servers',
      load: async () => (await import('../tools/bundle/command.ts')).addBundleCommand(program),
    },
    unbundle: {
      summary: 'unpack an MCPB file after checking its digest',
      load: async () => (await import('../tools/bundle/command.ts')).addUnbundleCommand(program),
    },
  }
}
