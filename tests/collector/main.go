// Command collector is an OpenTelemetry Collector of its own official parts: it receives OTLP over HTTP and gRPC,
// shows metrics to Prometheus, and writes what it received to a file, as one line of OTLP's JSON for each request.
package main

import (
	"context"
	"log"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

type lines struct {
	Path string `mapstructure:"path"`
}

type writer struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.Metrics
}

func create(_ context.Context, _ exporter.Settings, config component.Config) (exporter.Metrics, error) {
	file, err := os.OpenFile(config.(*lines).Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	sink, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		text, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
		if err == nil {
			_, err = file.Write(append(text, '\n'))
		}
		return err
	})
	return &writer{Metrics: sink}, err
}

func newLines() exporter.Factory {
	defaults := func() component.Config { return &lines{} }
	metrics := exporter.WithMetrics(create, component.StabilityLevelStable)
	return exporter.NewFactory(component.MustNewType("lines"), defaults, metrics)
}

func factories() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](newLines(), prometheusexporter.NewFactory())
	telemetry := otelconftelemetry.NewFactory()
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: telemetry}, err
}

func main() {
	files := confmap.ResolverSettings{
		DefaultScheme:     "file",
		ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
	}
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo:              component.BuildInfo{Command: "collector", Version: "tests"},
		Factories:              factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: files},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
