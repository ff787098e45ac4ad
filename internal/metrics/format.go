package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// formatMetrics say which data format is written; see the server's setting data-format.
type formatMetrics struct {
	written, read, behind prometheus.Gauge
}

func newFormatMetrics(f promauto.Factory) formatMetrics {
	return formatMetrics{
		written: f.NewGauge(prometheus.GaugeOpts{Name: "holdfast_data_format_written",
			Help: "Data format that the servers of this store have agreed to write."}),
		read: f.NewGauge(prometheus.GaugeOpts{Name: "holdfast_data_format_read",
			Help: "Newest data format that this server reads."}),
		behind: f.NewGauge(prometheus.GaugeOpts{Name: "holdfast_data_format_held_back",
			Help: "Servers that hold back the data format that this one asks for, because they do not read it."}),
	}
}

// FormatAgreed notes what the servers of the store have agreed upon.
func (m *Metrics) FormatAgreed(written, read, behind int) {
	m.formats.written.Set(float64(written))
	m.formats.read.Set(float64(read))
	m.formats.behind.Set(float64(behind))
}
