/** Addresses of Services: the range that the API server of a test assigns from, and the node's own address. */
const network = '10.0'
const bits = 16

export const serviceRange = `${network}.0.0/${bits}`
/** Address of kube-apiserver's own Service: the first address of the range. */
export const apiAddress = `${network}.0.1`
export const dnsAddress = `${network}.0.10`
/** On an interface, this assigns every address of the range to the node. */
export const nodeAddress = `${apiAddress}/${bits}`
