/** Paths, names and the MCP port in a virtual server's pod. */
export const configDirectory = '/etc/vmcp-config'
export const configFile = 'config.yaml'
export const mcpPort = 4483
export const container = 'vmcp'
export const app = 'virtualmcpserver'
